-- Networks in reduced precisions: each a file of its own in models/, removed with its network's. The last four columns say
-- how near it is to fp32, by whoever made it: positions compared, mean divergence of the policies in nats, share of
-- positions where both prefer the same action, mean difference of win minus loss.
CREATE TABLE model_variants (
    model BLOB NOT NULL REFERENCES models (model),
    precision TEXT NOT NULL CHECK (precision IN ('fp16', 'int8')),
    file BLOB NOT NULL UNIQUE,
    size_bytes INTEGER NOT NULL,
    sha256 BLOB NOT NULL,
    file_name TEXT NOT NULL,
    positions INTEGER NOT NULL,
    policy_kl REAL NOT NULL,
    policy_agreement REAL NOT NULL,
    value_error REAL NOT NULL,
    PRIMARY KEY (model, precision)
) STRICT, WITHOUT ROWID;
