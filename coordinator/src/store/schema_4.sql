-- Games that retention removed, by kind, so that the counters of `progress` still add up; their ids stay in `game_ids`.
CREATE TABLE removed_games (
    kind TEXT PRIMARY KEY CHECK (kind IN ('self-play', 'match')),
    games INTEGER NOT NULL,
    positions INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- When retention removed the file of a network; NULL while it lies in models/.
ALTER TABLE models ADD COLUMN removed_ms INTEGER;
