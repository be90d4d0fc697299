//! The two sockets by which the world outside reaches the stack: requests, and the API server.

use anyhow::{Context, Result};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpStream, UnixListener, UnixStream};

use super::pki::API_PORT;
use super::shared::Shared;
use crate::control::{Answer, Request};
use crate::standin;

pub(super) async fn serve(shared: Shared) -> Result<()> {
    let control = UnixListener::bind(shared.dir.control()).context("cannot listen for requests")?;
    let gate = UnixListener::bind(shared.dir.gate()).context("cannot listen at the gate")?;
    loop {
        tokio::select! {
            request = control.accept() => {
                if let Ok((stream, _)) = request {
                    let shared = shared.clone();
                    // An asker who hung up needs no answer.
                    tokio::spawn(async move { answer(&shared, stream).await.ok() });
                }
            }
            connection = gate.accept() => {
                if let Ok((mut outside, _)) = connection {
                    tokio::spawn(async move {
                        if let Ok(mut server) = TcpStream::connect(("127.0.0.1", API_PORT)).await {
                            tokio::io::copy_bidirectional(&mut outside, &mut server).await.ok();
                        }
                    });
                }
            }
        }
    }
}

async fn answer(shared: &Shared, stream: UnixStream) -> Result<()> {
    let (read, mut write) = stream.into_split();
    let mut line = String::new();
    BufReader::new(read).read_line(&mut line).await?;
    let done = match serde_json::from_str(&line) {
        Ok(request) => handle(shared, request).await,
        Err(error) => Err(error.into()),
    };
    let answer: Answer = done.map(|()| shared.status()).map_err(|error| format!("{error:#}"));
    let mut text = serde_json::to_vec(&answer)?;
    text.push(b'\n');
    write.write_all(&text).await?;
    Ok(())
}

async fn handle(shared: &Shared, request: Request) -> Result<()> {
    match request {
        Request::Status => Ok(()),
        Request::Stop { part } => shared.parts.stop(&part),
        Request::Start { part } => shared.parts.resume(&part),
        Request::Kill { part } => shared.parts.kill(&part),
        Request::Set { fault } => standin::set_fault(shared, fault).await,
        Request::Clear { fault } => standin::clear_fault(shared, &fault).await,
    }
}
