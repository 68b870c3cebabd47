-- Ids are blobs (16 bytes a lease, 32 a model or hash); times are milliseconds since the Unix epoch, UTC.

-- What the run is; one row, written once.
CREATE TABLE run (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    run_id TEXT NOT NULL,
    game TEXT NOT NULL,
    seed INTEGER NOT NULL,
    rules_fingerprint BLOB NOT NULL,
    feature_fingerprint BLOB NOT NULL,
    shape TEXT NOT NULL,
    created_ms INTEGER NOT NULL
) STRICT;

-- Where the run stands; one row.
CREATE TABLE progress (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    iteration INTEGER NOT NULL,
    iteration_games INTEGER NOT NULL,
    self_play_games INTEGER NOT NULL,
    match_games INTEGER NOT NULL,
    positions INTEGER NOT NULL,
    due_iteration INTEGER,
    due_positions INTEGER,
    published_iteration INTEGER NOT NULL,
    champion BLOB NOT NULL,
    generation INTEGER NOT NULL,
    fence INTEGER NOT NULL,
    window_epoch INTEGER NOT NULL,
    window_capacity INTEGER NOT NULL
) STRICT;

-- Every revision of the configuration.
CREATE TABLE settings (
    revision INTEGER PRIMARY KEY,
    toml TEXT NOT NULL,
    created_ms INTEGER NOT NULL
) STRICT;

-- Who changed what.
CREATE TABLE audit (
    id INTEGER PRIMARY KEY,
    at_ms INTEGER NOT NULL,
    who TEXT NOT NULL,
    action TEXT NOT NULL,
    detail TEXT NOT NULL
) STRICT;

-- Ended iterations.
CREATE TABLE iterations (
    iteration INTEGER PRIMARY KEY,
    games INTEGER NOT NULL,
    positions INTEGER NOT NULL,
    candidate_due INTEGER NOT NULL,
    ended_ms INTEGER NOT NULL
) STRICT;

-- Every game ever stored; outlives the game.
CREATE TABLE game_ids (
    lease BLOB NOT NULL,
    game_index INTEGER NOT NULL,
    hash BLOB NOT NULL,
    sequence INTEGER NOT NULL,
    PRIMARY KEY (lease, game_index)
) STRICT, WITHOUT ROWID;

-- The games, in commit order.
CREATE TABLE games (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    lease BLOB NOT NULL,
    game_index INTEGER NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('self-play', 'match')),
    actor TEXT NOT NULL,
    positions INTEGER NOT NULL,
    positions_total INTEGER NOT NULL,
    plies INTEGER NOT NULL,
    winner INTEGER,
    reason TEXT NOT NULL,
    opening_path TEXT,
    created_ms INTEGER NOT NULL,
    stored_ms INTEGER NOT NULL,
    record BLOB NOT NULL
) STRICT;
CREATE INDEX games_of_window ON games (kind, sequence, positions);

-- Self-play games by their path through the opening protocol.
CREATE TABLE opening_paths (
    path TEXT PRIMARY KEY,
    games INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Records whose id was stored with other bytes.
CREATE TABLE conflicts (
    id INTEGER PRIMARY KEY,
    lease BLOB NOT NULL,
    game_index INTEGER NOT NULL,
    actor TEXT NOT NULL,
    at_ms INTEGER NOT NULL,
    record BLOB NOT NULL
) STRICT;

-- The newest refused records.
CREATE TABLE quarantine (
    id INTEGER PRIMARY KEY,
    actor TEXT NOT NULL,
    code TEXT NOT NULL,
    detail TEXT NOT NULL,
    at_ms INTEGER NOT NULL,
    record BLOB NOT NULL
) STRICT;

-- How many records were refused, ever.
CREATE TABLE rejections (
    actor TEXT NOT NULL,
    code TEXT NOT NULL,
    records INTEGER NOT NULL,
    PRIMARY KEY (actor, code)
) STRICT, WITHOUT ROWID;

-- Work orders; `work_order` is an encoded tengen.v1.WorkOrder.
CREATE TABLE leases (
    lease BLOB PRIMARY KEY,
    actor TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('self-play', 'match')),
    gate INTEGER REFERENCES gates (gate),
    games INTEGER NOT NULL,
    stored INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('active', 'finished', 'returned', 'lapsed', 'cancelled')),
    issued_ms INTEGER NOT NULL,
    closed_ms INTEGER,
    work_order BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX leases_by_state ON leases (state);

-- Networks; the files lie in models/. `probes` is an encoded tengen.v1.Model with nothing but its probes.
CREATE TABLE models (
    number INTEGER PRIMARY KEY,
    model BLOB NOT NULL UNIQUE,
    iteration INTEGER NOT NULL,
    generation INTEGER,
    step INTEGER NOT NULL,
    parent BLOB,
    state TEXT NOT NULL
        CHECK (state IN ('candidate', 'gating', 'champion', 'former-champion', 'rejected', 'superseded')),
    created_ms INTEGER NOT NULL,
    size_bytes INTEGER NOT NULL,
    sha256 BLOB NOT NULL,
    metadata_json TEXT NOT NULL,
    verdict TEXT NOT NULL,
    settings_revision INTEGER NOT NULL REFERENCES settings (revision),
    file_name TEXT NOT NULL,
    probes BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX models_by_generation ON models (generation) WHERE generation IS NOT NULL;

-- Gates; `openings` is JSON: [{"plies": [...], "sampled_plies": n}, ...], one entry a pair.
CREATE TABLE gates (
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
    state TEXT NOT NULL CHECK (state IN ('open', 'promoted', 'rejected')),
    pairs INTEGER NOT NULL,
    wins INTEGER NOT NULL,
    draws INTEGER NOT NULL,
    losses INTEGER NOT NULL,
    reason TEXT NOT NULL,
    opened_ms INTEGER NOT NULL,
    decided_ms INTEGER
) STRICT;

-- Every match game in commit order: what a gate is decided from.
CREATE TABLE gate_log (
    gate INTEGER NOT NULL REFERENCES gates (gate),
    sequence INTEGER NOT NULL,
    lease BLOB NOT NULL,
    pair INTEGER NOT NULL,
    leg INTEGER NOT NULL CHECK (leg IN (0, 1)),
    score TEXT NOT NULL CHECK (score IN ('win', 'draw', 'loss')),
    standing TEXT NOT NULL CHECK (standing IN ('counts', 'late')),
    PRIMARY KEY (gate, sequence)
) STRICT, WITHOUT ROWID;

-- How the champion changed.
CREATE TABLE promotions (
    generation INTEGER PRIMARY KEY,
    model BLOB NOT NULL REFERENCES models (model),
    previous BLOB NOT NULL REFERENCES models (model),
    reason TEXT NOT NULL,
    at_ms INTEGER NOT NULL
) STRICT;

-- Actors that ever registered.
CREATE TABLE actors (
    actor TEXT PRIMARY KEY,
    host TEXT NOT NULL,
    build TEXT NOT NULL,
    provider TEXT NOT NULL,
    registered_ms INTEGER NOT NULL,
    strikes INTEGER NOT NULL,
    suspended_ms INTEGER
) STRICT, WITHOUT ROWID;
