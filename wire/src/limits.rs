//! What a decoder accepts. Input is hostile until it was decoded: a length is checked against these before it is used.

/// Bytes of a chunk's payload, compressed or not.
pub const CHUNK_BYTES: usize = 16 << 20;
/// Events in one chunk.
pub const CHUNK_EVENTS: usize = 1 << 16;
/// Frames of one stack: native, Python and markers together.
pub const STACK_FRAMES: usize = 2048;
/// Bytes of one encoded definition.
pub const DEFINITION_BYTES: usize = 256 << 10;
/// Bytes of one name, path or source line as the shim sends it. Longer ones are cut by the shim.
pub const STRING_BYTES: usize = 4096;
/// Arguments of a command line that are kept.
pub const COMMAND_ARGUMENTS: usize = 256;
