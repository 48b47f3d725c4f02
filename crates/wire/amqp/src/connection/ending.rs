//! The end of sessions and of the connection, whichever side begins it.

use tokio::time::Instant;

use super::machine::Machine;
use crate::performative::{Close, End, Performative};
use crate::state::{Error, condition};

/// How far the end of the connection has come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Ending {
    Open,
    /// The client has closed; it is answered when the front has let go of all links, or at this time.
    Closing(Instant),
    /// We have closed and wait for the client, until this time.
    Closed(Instant),
    Over,
}

impl Machine {
    /// The client says nothing more in this session.
    pub(super) fn ended_by_client(&mut self, channel: u16) {
        let Some(session) = self.sessions.get_mut(&channel) else { return };
        session.ending = true;
        let handles: Vec<u32> = session.links.keys().copied().collect();
        for handle in handles {
            self.left_by_client(channel, handle, true);
        }
        self.conclude(channel);
    }

    /// Answers the end of a session whose links are all gone.
    pub(super) fn conclude(&mut self, channel: u16) {
        let Some(session) = self.sessions.get(&channel) else { return };
        if session.ending && session.links.is_empty() {
            self.forget_session(channel);
            self.flush_disposition();
            self.write(channel, &Performative::End(End::default()));
        }
        if matches!(self.ending, Ending::Closing(_)) && self.links == 0 {
            self.answer_close();
        }
    }

    fn forget_session(&mut self, channel: u16) {
        if let Some(session) = self.sessions.remove(&channel) {
            self.waiting -= session.waiting.len();
            for waiting in &session.waiting {
                self.unqueue(waiting.cost());
            }
        }
    }

    /// Ends a session in which the client has done what it must not.
    pub(super) fn end(&mut self, channel: u16, error: Error) {
        let Some(session) = self.sessions.get(&channel) else { return };
        let handles: Vec<u32> = session.links.keys().copied().collect();
        for handle in handles {
            self.forget_link(channel, handle);
        }
        self.forget_session(channel);
        self.flush_disposition();
        self.write(channel, &Performative::End(End { error: Some(error) }));
    }

    pub(super) fn closed_by_client(&mut self) {
        let channels: Vec<u16> = self.sessions.keys().copied().collect();
        self.ending = Ending::Closing(Instant::now() + self.limits().close_timeout);
        for channel in channels {
            self.ended_by_client(channel);
        }
        if self.links == 0 {
            self.answer_close();
        }
    }

    pub(super) fn answer_close(&mut self) {
        if self.ending != Ending::Over {
            self.flush_disposition();
            self.write(0, &Performative::Close(Close::default()));
            self.ending = Ending::Over;
        }
    }

    /// Closes the connection from our side.
    pub(super) fn close(&mut self, error: Option<Error>) {
        if matches!(self.ending, Ending::Closed(_) | Ending::Over) {
            return;
        }
        self.flush_disposition();
        self.write(0, &Performative::Close(Close { error }));
        self.ending = Ending::Closed(Instant::now() + self.limits().close_timeout);
        self.sessions.clear();
        (self.links, self.waiting, self.unsettled_bytes, self.partial_bytes) = (0, 0, 0, 0);
    }

    pub(super) fn close_for_stop(&mut self) {
        let text = "The server is stopping. Connect again.";
        self.close(Some(Error::new(condition::CONNECTION_FORCED, text)));
    }
}
