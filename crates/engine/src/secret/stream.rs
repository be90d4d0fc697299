//! Redaction of something that comes in pieces: a log that is followed.

use super::Redactor;

/// A line this long is treated in pieces, so that memory stays bounded.
const LONGEST_LINE: usize = 256 * 1024;

/// Takes chunks and gives back clean bytes. Holds back the last line until it is whole, so that neither a secret nor a
/// character is cut by the border of a chunk.
#[derive(Debug)]
pub struct RedactedStream {
    redactor: Redactor,
    held: Vec<u8>,
    in_key: bool,
}

impl RedactedStream {
    /// A stream from its beginning.
    pub fn new(redactor: Redactor) -> Self {
        Self { redactor, held: Vec::new(), in_key: false }
    }

    /// Takes a chunk; appends what is certain by now.
    pub fn push(&mut self, chunk: &[u8], clean: &mut Vec<u8>) {
        self.held.extend_from_slice(chunk);
        if let Some(end) = self.held.iter().rposition(|byte| *byte == b'\n') {
            let rest = self.held.split_off(end + 1);
            let lines = std::mem::replace(&mut self.held, rest);
            for line in lines.split_inclusive(|byte| *byte == b'\n') {
                self.line(line, clean);
            }
        }
        if self.held.len() > LONGEST_LINE {
            self.cut(clean);
        }
    }

    /// The rest.
    pub fn finish(mut self, clean: &mut Vec<u8>) {
        let rest = std::mem::take(&mut self.held);
        self.line(&rest, clean);
    }

    fn line(&mut self, line: &[u8], clean: &mut Vec<u8>) {
        // A private key has many lines; its body is masked until its end is seen.
        if self.in_key {
            if contains(line, b"-----END ") {
                self.in_key = false;
            }
            return;
        }
        clean.extend_from_slice(&self.redactor.bytes(line));
        if contains(line, b"-----BEGIN ") && contains(line, b"PRIVATE KEY-----") && !contains(line, b"-----END ") {
            self.in_key = true;
            clean.push(b'\n');
        }
    }

    /// Gives out the beginning of an endless line, up to where a secret could still begin.
    fn cut(&mut self, clean: &mut Vec<u8>) {
        let hold = self.redactor.longest().max(8 * 1024);
        if self.in_key {
            let rest = self.held.split_off(self.held.len() - "-----END ".len());
            self.held = rest;
            return;
        }
        if self.held.len() <= hold {
            return;
        }
        let mut cut = self.held.len() - hold;
        if let Some(span) = self.redactor.spans(&self.held).into_iter().find(|span| span.contains(&cut)) {
            cut = if span.start == 0 { span.end } else { span.start };
        }
        let rest = self.held.split_off(cut);
        let ready = std::mem::replace(&mut self.held, rest);
        clean.extend_from_slice(&self.redactor.bytes(&ready));
    }
}

fn contains(line: &[u8], text: &[u8]) -> bool {
    line.windows(text.len()).any(|window| window == text)
}
