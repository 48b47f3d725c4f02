//! A network in between that can be cut and held up.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lazuli_store_postgres::{Host, Settings};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

pub(crate) struct Proxy {
    port: u16,
    lines: Arc<Mutex<Vec<AbortHandle>>>,
    is_held: Arc<AtomicBool>,
    connections: Arc<AtomicU64>,
}

impl Proxy {
    pub(crate) async fn before(settings: &mut Settings) -> Self {
        let target: SocketAddr = settings.hosts[0].to_string().parse().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        settings.hosts = vec![Host { name: "127.0.0.1".to_owned(), port }];
        let lines: Arc<Mutex<Vec<AbortHandle>>> = Arc::default();
        let (is_held, connections) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let proxy = Self {
            port,
            lines: lines.clone(),
            is_held: is_held.clone(),
            connections: connections.clone(),
        };
        tokio::spawn(async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                connections.fetch_add(1, Ordering::Relaxed);
                let line = tokio::spawn(forward(client, target, is_held.clone()));
                lines.lock().unwrap().push(line.abort_handle());
            }
        });
        proxy
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Connections that were made through it so far.
    pub(crate) fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    /// Cuts the connection that was made as the n-th, counted from the last.
    pub(crate) fn cut_one(&self, n: usize) {
        let mut lines = self.lines.lock().unwrap();
        lines.retain(|line| !line.is_finished());
        if !lines.is_empty() {
            let at = n % lines.len();
            lines.swap_remove(at).abort();
        }
    }

    /// From now on bytes stay where they are, or go on.
    pub(crate) fn hold(&self, is_held: bool) {
        self.is_held.store(is_held, Ordering::Release);
    }
}

async fn forward(client: TcpStream, target: SocketAddr, is_held: Arc<AtomicBool>) {
    let Ok(server) = TcpStream::connect(target).await else { return };
    client.set_nodelay(true).unwrap();
    server.set_nodelay(true).unwrap();
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let held = is_held.clone();
    let up = async {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(read @ 1..) = from_client.read(&mut buffer).await {
            wait(&held).await;
            if to_server.write_all(&buffer[..read]).await.is_err() {
                break;
            }
        }
    };
    let down = async {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(read @ 1..) = from_server.read(&mut buffer).await {
            wait(&is_held).await;
            if to_client.write_all(&buffer[..read]).await.is_err() {
                break;
            }
        }
    };
    tokio::select! { biased; () = up => {}, () = down => {} }
}

async fn wait(is_held: &AtomicBool) {
    while is_held.load(Ordering::Acquire) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
