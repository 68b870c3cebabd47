-- Audits by actor. What failed and was not forgiven when the actor was resumed is what suspends it; `missed` games were
-- drawn and not audited, and have the actor ''.
CREATE TABLE audits (
    actor TEXT PRIMARY KEY,
    audited INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    missed INTEGER NOT NULL,
    forgiven INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The newest games that failed their audit. They stay stored; `difference` is the greatest of a probability.
CREATE TABLE audit_failures (
    id INTEGER PRIMARY KEY,
    lease BLOB NOT NULL,
    game_index INTEGER NOT NULL,
    actor TEXT NOT NULL,
    model BLOB NOT NULL,
    positions INTEGER NOT NULL,
    difference REAL NOT NULL,
    detail TEXT NOT NULL,
    at_ms INTEGER NOT NULL
) STRICT;
