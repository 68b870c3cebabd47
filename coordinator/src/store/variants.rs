//! Networks in reduced precisions: what is known about each file of theirs in `models/`.

use rusqlite::{Connection, OptionalExtension, params};
use tengen_records::{ModelId, Precision};

use super::StoreError;
use super::leases::model_id;

/// How near a file is to its network in fp32, by whoever made it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fidelity {
    /// Positions compared.
    pub positions: u32,
    /// Mean divergence of the policies, nats.
    pub policy_kl: f32,
    /// Share of positions where both prefer the same action, in `[0, 1]`.
    pub policy_agreement: f32,
    /// Mean difference of win minus loss, in `[0, 2]`.
    pub value_error: f32,
}

/// A network in a reduced precision.
#[derive(Clone, Debug, PartialEq)]
pub struct VariantRow {
    /// The network.
    pub model: ModelId,
    /// The precision.
    pub precision: Precision,
    /// Hash of the file.
    pub file: ModelId,
    /// Size of the file.
    pub size_bytes: u64,
    /// SHA-256 of the file.
    pub sha256: Vec<u8>,
    /// The file within `models/`.
    pub file_name: String,
    /// How near it is to fp32.
    pub fidelity: Fidelity,
    /// What it answered for the network's probes where it was made, as an encoded `tengen.v1.ModelVariant` with nothing else;
    /// empty where it was published without, and in listings.
    pub answers: Vec<u8>,
}

/// Stores a network's file in a reduced precision. The network is stored already.
pub fn insert(connection: &Connection, variant: &VariantRow) -> Result<(), StoreError> {
    let sql = "INSERT INTO model_variants (model, precision, file, size_bytes, sha256, file_name, positions, policy_kl, \
               policy_agreement, value_error, answers) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    let Fidelity {
        positions,
        policy_kl,
        policy_agreement,
        value_error,
    } = variant.fidelity;
    connection.execute(
        sql,
        params![
            variant.model.0,
            variant.precision.as_str(),
            variant.file.0,
            variant.size_bytes,
            variant.sha256,
            variant.file_name,
            positions,
            policy_kl,
            policy_agreement,
            value_error,
            variant.answers
        ],
    )?;
    Ok(())
}

/// The reduced precisions that a network comes in, by name, without answers.
pub fn of(connection: &Connection, model: ModelId) -> Result<Vec<VariantRow>, StoreError> {
    select(connection, model, "x''")
}

/// The same with answers.
pub fn with_answers(connection: &Connection, model: ModelId) -> Result<Vec<VariantRow>, StoreError> {
    select(connection, model, "answers")
}

fn select(connection: &Connection, model: ModelId, answers: &str) -> Result<Vec<VariantRow>, StoreError> {
    let sql = format!(
        "SELECT precision, file, size_bytes, sha256, file_name, positions, policy_kl, policy_agreement, value_error, \
         {answers} FROM model_variants WHERE model = ?1 ORDER BY precision"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query([model.0])?;
    let mut variants = Vec::new();
    while let Some(row) = rows.next()? {
        let precision: String = row.get(0)?;
        variants.push(VariantRow {
            model,
            precision: Precision::parse(&precision).ok_or_else(|| StoreError::corrupt("precision", &precision))?,
            file: model_id("file id", row.get_ref(1)?.as_bytes()?)?,
            size_bytes: row.get(2)?,
            sha256: row.get(3)?,
            file_name: row.get(4)?,
            fidelity: Fidelity {
                positions: row.get(5)?,
                policy_kl: row.get(6)?,
                policy_agreement: row.get(7)?,
                value_error: row.get(8)?,
            },
            answers: row.get(9)?,
        });
    }
    Ok(variants)
}

/// A file of a network, in whatever precision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRow {
    /// Its name within `models/`.
    pub file_name: String,
    /// Its size.
    pub size_bytes: u64,
    /// When retention removed it; none while it is there.
    pub removed_ms: Option<i64>,
}

/// The file with this hash, a network's own or that of a reduced precision.
pub fn file(connection: &Connection, id: ModelId) -> Result<Option<FileRow>, StoreError> {
    let sql = "SELECT file_name, size_bytes, removed_ms FROM models WHERE model = ?1 UNION ALL \
               SELECT model_variants.file_name, model_variants.size_bytes, removed_ms \
               FROM model_variants JOIN models USING (model) WHERE file = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    Ok(statement.query_row([id.0], file_row).optional()?)
}

fn file_row(row: &rusqlite::Row) -> rusqlite::Result<FileRow> {
    Ok(FileRow {
        file_name: row.get(0)?,
        size_bytes: row.get(1)?,
        removed_ms: row.get(2)?,
    })
}
