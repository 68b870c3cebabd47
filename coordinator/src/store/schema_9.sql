-- The audit says what a change found and what it left, each empty where there is nothing to compare.
ALTER TABLE audit ADD COLUMN old TEXT NOT NULL DEFAULT '';
ALTER TABLE audit ADD COLUMN new TEXT NOT NULL DEFAULT '';

-- How people steer the run; one row. `ended_ms` is when the run was ended for good.
CREATE TABLE steering (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    self_play_paused INTEGER NOT NULL CHECK (self_play_paused IN (0, 1)),
    training_paused INTEGER NOT NULL CHECK (training_paused IN (0, 1)),
    gating_paused INTEGER NOT NULL CHECK (gating_paused IN (0, 1)),
    pinned INTEGER NOT NULL CHECK (pinned IN (0, 1)),
    ended_ms INTEGER
) STRICT;
INSERT INTO steering VALUES (1, 0, 0, 0, 0, NULL);

-- Who made each revision of the settings.
ALTER TABLE settings ADD COLUMN who TEXT NOT NULL DEFAULT 'coordinator';

-- Keys that were changed while the run went on: the newest revision holds their values, and they win over the run file
-- until it says the same or is applied.
CREATE TABLE live_keys (
    key TEXT PRIMARY KEY,
    revision INTEGER NOT NULL REFERENCES settings (revision)
) STRICT, WITHOUT ROWID;

-- Champions that people took back; the generation of each model says how far.
CREATE TABLE rollbacks (
    id INTEGER PRIMARY KEY,
    model BLOB NOT NULL REFERENCES models (model),
    previous BLOB NOT NULL REFERENCES models (model),
    who TEXT NOT NULL,
    reason TEXT NOT NULL,
    at_ms INTEGER NOT NULL
) STRICT;

-- A network that passed its gate while the champion was pinned is `held`.
CREATE TABLE models_9 (
    number INTEGER PRIMARY KEY,
    model BLOB NOT NULL UNIQUE,
    iteration INTEGER NOT NULL,
    generation INTEGER,
    step INTEGER NOT NULL,
    parent BLOB,
    state TEXT NOT NULL
        CHECK (state IN ('candidate', 'gating', 'champion', 'former-champion', 'rejected', 'superseded', 'held')),
    created_ms INTEGER NOT NULL,
    size_bytes INTEGER NOT NULL,
    sha256 BLOB NOT NULL,
    metadata_json TEXT NOT NULL,
    verdict TEXT NOT NULL,
    settings_revision INTEGER NOT NULL REFERENCES settings (revision),
    file_name TEXT NOT NULL,
    probes BLOB NOT NULL,
    removed_ms INTEGER
) STRICT;
INSERT INTO models_9 SELECT * FROM models;
DROP TABLE models;
ALTER TABLE models_9 RENAME TO models;
CREATE UNIQUE INDEX models_by_generation ON models (generation) WHERE generation IS NOT NULL;

-- A gate that was closed before its games decided it is `void`.
CREATE TABLE gates_9 (
    gate INTEGER PRIMARY KEY,
    candidate BLOB NOT NULL,
    champion BLOB NOT NULL,
    iteration INTEGER NOT NULL,
    pairs_wanted INTEGER NOT NULL,
    pairs_target INTEGER NOT NULL,
    threshold_millionths INTEGER NOT NULL,
    strict INTEGER NOT NULL,
    seed INTEGER NOT NULL,
    openings TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('open', 'promoted', 'rejected', 'void')),
    pairs INTEGER NOT NULL,
    wins INTEGER NOT NULL,
    draws INTEGER NOT NULL,
    losses INTEGER NOT NULL,
    reason TEXT NOT NULL,
    opened_ms INTEGER NOT NULL,
    decided_ms INTEGER,
    rule TEXT NOT NULL,
    openings_repeated INTEGER NOT NULL,
    pool TEXT NOT NULL,
    pair_scores TEXT,
    llr REAL,
    elo REAL,
    elo_low REAL,
    elo_high REAL,
    streak INTEGER NOT NULL DEFAULT 0,
    in_a_row INTEGER NOT NULL
) STRICT;
INSERT INTO gates_9 SELECT * FROM gates;
DROP TABLE gates;
ALTER TABLE gates_9 RENAME TO gates;
