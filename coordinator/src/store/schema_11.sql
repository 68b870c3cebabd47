-- What a file in a reduced precision answered for its network's probes where it was made: an encoded tengen.v1.ModelVariant with
-- nothing else. Empty where it was published without.
ALTER TABLE model_variants ADD COLUMN answers BLOB NOT NULL DEFAULT x'';
