//! The name of a derived machine set.

/// A label value's limit, less the dash and five characters that a Machine's name adds.
const LIMIT: usize = 63 - 6;
const HASH: usize = 6;

/// `<base>--<type>` with the type in small letters and dashes, as upstream names it; cut with a short hash when it is too
/// long, or when `distinct` asks for it because another type already has the plain name. The same input gives the same
/// name. `infra`, the prefix by which the owner of a cloud's machines is found, is the last to be cut.
pub fn derived_name(base: &str, instance_type: &str, infra: Option<&str>, distinct: bool) -> String {
    let base = legal(base);
    let size = legal(instance_type);
    let plain = format!("{base}--{size}");
    if plain.len() <= LIMIT && !distinct {
        return plain;
    }
    let room = LIMIT - "--".len() - "-".len() - HASH;
    let infra = infra
        .map(str::len)
        .filter(|len| infra.is_some_and(|infra| base.starts_with(infra)) && *len <= base.len())
        .unwrap_or(0);
    // The type gets what the infrastructure's name leaves it, the rest of the base what the type leaves it.
    let size_room = size.len().min(room.saturating_sub(infra.max(1)).max(4));
    let base_room = base.len().min(room - size_room);
    let base = base[..base_room].trim_end_matches('-');
    let size = size[..size_room].trim_end_matches('-');
    format!("{base}--{size}-{}", hash(&format!("{plain}/{instance_type}")))
}

/// Small letters, digits and single dashes in the middle. Any other character becomes a dash.
fn legal(text: &str) -> String {
    let dashed: String = text
        .chars()
        .map(|c| match c.to_ascii_lowercase() {
            c if c.is_ascii_alphanumeric() => c,
            _ => '-',
        })
        .collect();
    dashed.trim_matches('-').to_owned()
}

/// Six characters of FNV-1a, which is enough to tell the sets of one cluster apart.
fn hash(text: &str) -> String {
    const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
    let mut hash = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    (0..HASH)
        .map(|_| {
            let letter = LETTERS[(hash % 32) as usize];
            hash /= 32;
            char::from(letter)
        })
        .collect()
}
