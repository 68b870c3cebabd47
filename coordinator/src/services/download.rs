//! Downloads of networks: a file in pieces, each read when the connection asks for it.
//!
//! A thousand actors fetch a new champion at the same time, and most of them read more slowly than the disk gives. So nothing
//! is read ahead: a download whose reader takes its time holds no more than the one piece that is on its way, and no open
//! file. That a piece is asked for only once the one before has left is the work of [`super::paced`].

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tengen_proto::v1;
use tokio::sync::Semaphore;
use tokio_stream::Stream;
use tonic::Status;

use super::{blocking, errors};
use crate::files::ModelFiles;

/// Bytes of a piece: a thousand downloads together hold 32 MiB, and one alone is still limited by its connection.
const PIECE_BYTES: usize = 32 << 10;
/// Pieces that are read at once, over all downloads: more threads would only wait for the same disk.
const READS_MAX: usize = 8;

/// Where downloads come from; clones share the bound on their reads.
#[derive(Clone, Debug)]
pub(super) struct Downloads {
    files: ModelFiles,
    reads: Arc<Semaphore>,
}

impl Downloads {
    pub(super) fn new(files: ModelFiles) -> Downloads {
        Downloads {
            files,
            reads: Arc::new(Semaphore::new(READS_MAX)),
        }
    }

    /// What a file of so many bytes holds from `offset` on.
    pub(super) fn begin(&self, file_name: &str, size_bytes: u64, offset: u64) -> Download {
        Download {
            from: self.clone(),
            file_name: file_name.into(),
            size_bytes,
            offset,
            reading: None,
        }
    }

    /// The piece at `offset`.
    async fn read(self, file_name: Arc<str>, offset: u64) -> Result<Vec<u8>, Status> {
        let Downloads { files, reads } = self;
        let Ok(_turn) = reads.acquire().await else {
            return Err(errors::draining());
        };
        let name = Arc::clone(&file_name);
        match blocking(move || files.read(&name, offset, PIECE_BYTES)).await? {
            Ok(piece) if piece.is_empty() => Err(errors::internal(&format!("the file {file_name} ends early"))),
            Ok(piece) => Ok(piece),
            Err(error) => Err(errors::internal(&error)),
        }
    }
}

type Reading = Pin<Box<dyn Future<Output = Result<Vec<u8>, Status>> + Send>>;

/// One download; it ends with the file, or with the first error.
pub(crate) struct Download {
    from: Downloads,
    file_name: Arc<str>,
    size_bytes: u64,
    /// First byte of the next piece.
    offset: u64,
    /// The piece that is being read.
    reading: Option<Reading>,
}

impl Stream for Download {
    type Item = Result<v1::ModelChunk, Status>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Download {
            from,
            file_name,
            size_bytes,
            offset,
            reading,
        } = self.get_mut();
        if *offset >= *size_bytes {
            return Poll::Ready(None);
        }
        let piece = reading.get_or_insert_with(|| Box::pin(from.clone().read(Arc::clone(file_name), *offset)));
        let read = ready!(piece.as_mut().poll(context));
        *reading = None;
        Poll::Ready(Some(match read {
            Ok(data) => {
                let chunk = v1::ModelChunk { offset: *offset, data };
                *offset += chunk.data.len() as u64;
                Ok(chunk)
            }
            Err(status) => {
                *offset = *size_bytes;
                Err(status)
            }
        }))
    }
}

#[cfg(test)]
mod tests {
    use tokio_stream::StreamExt;

    use super::*;

    const FILE: &str = "network.onnx";

    /// Downloads of one file that holds these bytes, and the folder it lies in.
    fn downloads(bytes: &[u8]) -> (Downloads, tempfile::TempDir) {
        let data = tempfile::tempdir().unwrap();
        tengen_service::files::write_atomic(&data.path().join("models").join(FILE), bytes).unwrap();
        (Downloads::new(ModelFiles::new(data.path())), data)
    }

    #[tokio::test]
    async fn pieces_are_small_and_make_the_rest_of_the_file() {
        let bytes: Vec<u8> = (0..3 * PIECE_BYTES + 5).map(|index| index as u8).collect();
        let (downloads, _folder) = downloads(&bytes);
        for begin in [0, 7, PIECE_BYTES, bytes.len()] {
            let mut download = downloads.begin(FILE, bytes.len() as u64, begin as u64);
            let mut came = Vec::new();
            while let Some(chunk) = download.next().await {
                let chunk = chunk.unwrap();
                assert_eq!(chunk.offset, (begin + came.len()) as u64);
                assert!(chunk.data.len() <= PIECE_BYTES);
                came.extend(chunk.data);
            }
            assert_eq!(came, bytes[begin..]);
        }
    }

    #[tokio::test]
    async fn a_file_that_ends_early_ends_its_download_with_an_error() {
        let (downloads, _folder) = downloads(&[1, 2, 3]);
        let mut download = downloads.begin(FILE, 4, 0);
        assert_eq!(download.next().await.unwrap().unwrap().data, [1, 2, 3]);
        assert_eq!(
            download.next().await.unwrap().unwrap_err().code(),
            tonic::Code::Internal
        );
        assert!(download.next().await.is_none());
    }
}
