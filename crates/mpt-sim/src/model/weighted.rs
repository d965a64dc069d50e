//! The sending vector of draft-lencse-tsvwg-mpt section 5.1, written down in full.

/// The order in which paths with these weights take packets, until it repeats.
///
/// Each path advances by L / weight when it is chosen, L being the least common multiple of the
/// weights; next is always the path that would then have advanced least, the first such on a tie;
/// the vector ends when all have advanced equally far. Weights are at least 1; without any the
/// vector is empty. The sum of the weights should be small: that many entries are made.
///
/// # Panics
///
/// If the least common multiple exceeds 128 bits.
pub fn sending_vector(weights: &[u16]) -> Vec<usize> {
    let Some(multiple) = weights.iter().copied().map(u128::from).reduce(least_common_multiple)
    else {
        return Vec::new();
    };
    let steps: Vec<u128> = weights.iter().map(|&weight| multiple / u128::from(weight)).collect();
    let mut advanced = vec![0; weights.len()];
    let mut vector = Vec::new();
    loop {
        let next = (0..weights.len()).min_by_key(|&path| advanced[path] + steps[path]);
        let Some(next) = next else { return vector };
        advanced[next] += steps[next];
        vector.push(next);
        if advanced.iter().all(|&sum| sum == advanced[0]) {
            return vector;
        }
    }
}

fn least_common_multiple(a: u128, b: u128) -> u128 {
    let quotient = a / greatest_common_divisor(a, b);
    quotient.checked_mul(b).expect("the weights have a common multiple of 128 bits")
}

fn greatest_common_divisor(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_made_by_hand() {
        assert_eq!(sending_vector(&[]), []);
        assert_eq!(sending_vector(&[7]), [0]);
        assert_eq!(sending_vector(&[1, 1]), [0, 1]);
        assert_eq!(sending_vector(&[5, 5, 5]), [0, 1, 2]);
        // Steps 1 and 2: sums 1/2, 2/2 -> 0, then 2 and 2 -> 0 first, then 1.
        assert_eq!(sending_vector(&[2, 1]), [0, 0, 1]);
        // Steps 2 and 3 of L = 6: 2|3, 4|3, 4|6, 6|6, -|6.
        assert_eq!(sending_vector(&[3, 2]), [0, 1, 0, 0, 1]);
        assert_eq!(sending_vector(&[1, 10]), [1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1]);
    }

    #[test]
    fn every_path_is_in_the_vector_by_its_weight() {
        let weights = [12, 4, 8, 20];
        let vector = sending_vector(&weights);
        assert_eq!(vector.len(), 11);
        for (path, weight) in weights.into_iter().enumerate() {
            let count = vector.iter().filter(|&&chosen| chosen == path).count();
            assert_eq!(count, usize::from(weight) / 4);
        }
    }
}
