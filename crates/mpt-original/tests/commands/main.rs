//! The command protocol of the original MPT, with messages that the tests write byte by byte.

mod create;
mod description;
mod initiator;
mod message;
mod peer;
mod responder;
mod saved;
