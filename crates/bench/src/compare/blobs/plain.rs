//! What plain files give on this disk: a server that does nothing but write what it gets to a file and sync it, and read a
//! file and send it. It takes the same requests, so that one load generator measures all.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::compare::Result;

/// How much is read or written at once.
const PIECE_BYTES: usize = 256 * 1024;

/// Serves until the process ends. What is read is a file of this many bytes of zeros and ones.
pub(super) fn start(folder: &Path, readable: u64, content: &[u8]) -> Result<SocketAddr> {
    let failed = |error: std::io::Error| error.to_string();
    std::fs::create_dir_all(folder).map_err(failed)?;
    let source = folder.join("source");
    let mut file = File::create(&source).map_err(failed)?;
    for _ in 0..readable.div_ceil(content.len() as u64) {
        file.write_all(content).map_err(failed)?;
    }
    file.sync_all().map_err(failed)?;
    let listener = TcpListener::bind("127.0.0.1:0").map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let folder = folder.to_owned();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (folder, source) = (folder.clone(), source.clone());
            // A connection that breaks is the end of its measurement.
            std::thread::spawn(move || serve(stream, &folder, &source));
        }
    });
    Ok(address)
}

fn serve(stream: TcpStream, folder: &Path, source: &PathBuf) -> std::io::Result<()> {
    static FILES: AtomicU64 = AtomicU64::new(0);
    stream.set_nodelay(true)?;
    let mut input = BufReader::with_capacity(PIECE_BYTES, stream.try_clone()?);
    let mut output = stream;
    let source = File::open(source)?;
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let head = read_head(&mut input)?;
        if head.is_get {
            let length = head.range.1 - head.range.0;
            write!(output, "HTTP/1.1 206 Partial Content\r\ncontent-length: {length}\r\n\r\n")?;
            let mut at = head.range.0;
            while at < head.range.1 {
                let part = (head.range.1 - at).min(PIECE_BYTES as u64) as usize;
                source.read_exact_at(&mut piece[..part], at)?;
                output.write_all(&piece[..part])?;
                at += part as u64;
            }
            continue;
        }
        let path = folder.join(format!("file-{}", FILES.fetch_add(1, Ordering::Relaxed)));
        let mut file = File::create(&path)?;
        let mut left = head.length;
        while left > 0 {
            let part = left.min(PIECE_BYTES as u64) as usize;
            input.read_exact(&mut piece[..part])?;
            file.write_all(&piece[..part])?;
            left -= part as u64;
        }
        file.sync_all()?;
        output.write_all(b"HTTP/1.1 201 Created\r\ncontent-length: 0\r\n\r\n")?;
        // What was measured needs no room on the disk any more.
        std::fs::remove_file(path)?;
    }
}

#[derive(Default)]
struct Head {
    is_get: bool,
    length: u64,
    range: (u64, u64),
}

fn read_head(input: &mut impl BufRead) -> std::io::Result<Head> {
    let mut head = Head::default();
    let mut line = String::new();
    for number in 0.. {
        line.clear();
        if input.read_line(&mut line)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let text = line.trim_end();
        if text.is_empty() {
            break;
        }
        head.is_get |= number == 0 && text.starts_with("GET ");
        if let Some(length) = text.strip_prefix("content-length: ") {
            head.length = length.parse().unwrap_or(0);
        }
        let range = text.strip_prefix("range: bytes=").and_then(|range| range.split_once('-'));
        if let Some((first, last)) = range {
            head.range = (first.parse().unwrap_or(0), last.parse::<u64>().unwrap_or(0) + 1);
        }
    }
    Ok(head)
}
