-- Every match game by pairing, from the view of `first`: those of gates, late ones included, and those of rating matches,
-- which `rated` counts apart. Players are in the notation of docs/ratings.md with whole network ids, `first` the lesser
-- text. `openings` counts the openings that rating matches of the pairing were given: none is given twice.
CREATE TABLE pairings (
    first TEXT NOT NULL,
    second TEXT NOT NULL,
    wins INTEGER NOT NULL,
    draws INTEGER NOT NULL,
    losses INTEGER NOT NULL,
    rated INTEGER NOT NULL,
    openings INTEGER NOT NULL,
    PRIMARY KEY (first, second),
    CHECK (first < second)
) STRICT, WITHOUT ROWID;

-- What gates played before there was this table.
INSERT INTO pairings
SELECT min(candidate, champion), max(candidate, champion),
    sum(score <> 'draw' AND (score = 'win') = (candidate < champion)),
    sum(score = 'draw'),
    sum(score <> 'draw' AND (score = 'win') = (candidate > champion)),
    0, 0
FROM (
    SELECT lower(hex(candidate)) AS candidate, lower(hex(champion)) AS champion, score
    FROM gate_log JOIN gates USING (gate)
)
WHERE candidate <> champion
GROUP BY 1, 2;
