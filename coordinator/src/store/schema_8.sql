-- What decides a gate, as JSON: {"kind":"fixed"} has its numbers in threshold_millionths and strict, {"kind":"sprt",...}
-- says them (and leaves those two 0).
ALTER TABLE gates ADD COLUMN rule TEXT NOT NULL DEFAULT '{"kind":"fixed"}';
-- Pairs whose opening an earlier pair has too.
ALTER TABLE gates ADD COLUMN openings_repeated INTEGER NOT NULL DEFAULT 0;
-- The matches with earlier champions, as JSON; their pairs and openings come after the champion's.
ALTER TABLE gates ADD COLUMN pool TEXT NOT NULL DEFAULT '[]';
-- Of a decided gate: pairs that brought 0 to 4 half points (JSON), the log-likelihood ratio where the rule goes by one,
-- and the Elo difference with its 95 % interval. NULL while open, without a pair, and in gates before this schema.
ALTER TABLE gates ADD COLUMN pair_scores TEXT;
ALTER TABLE gates ADD COLUMN llr REAL;
ALTER TABLE gates ADD COLUMN elo REAL;
ALTER TABLE gates ADD COLUMN elo_low REAL;
ALTER TABLE gates ADD COLUMN elo_high REAL;
-- Where several successive candidates must pass: how many had with this one, and how many must. A gate that is 'rejected'
-- with a streak above 0 was passed, and the champion stayed.
ALTER TABLE gates ADD COLUMN streak INTEGER NOT NULL DEFAULT 0;
ALTER TABLE gates ADD COLUMN in_a_row INTEGER NOT NULL DEFAULT 1;
