-- Who may come: tokens by the hash of their secret. `token` is the public part.
CREATE TABLE tokens (
    token TEXT PRIMARY KEY,
    role TEXT NOT NULL CHECK (role IN ('viewer', 'actor', 'learner', 'admin')),
    name TEXT NOT NULL,
    hash BLOB NOT NULL,
    created_ms INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    expires_ms INTEGER,
    revoked_ms INTEGER
) STRICT, WITHOUT ROWID;

-- The token an actor came with.
ALTER TABLE actors ADD COLUMN token TEXT;

-- When a game was taken out of the window by a purge; it stays for whoever wants to look at it.
ALTER TABLE games ADD COLUMN purged_ms INTEGER;
CREATE INDEX games_by_actor ON games (actor, stored_ms);
DROP INDEX games_of_window;
CREATE INDEX games_of_window ON games (sequence, positions) WHERE kind = 'self-play' AND purged_ms IS NULL;
