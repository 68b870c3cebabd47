//! The information matrix of a fit, solved: a network of conductances with one node grounded.
//!
//! The matrix is a graph's Laplacian without the row of the fixed player: `c` between two players is the information that
//! their games hold. Eliminating a node joins its neighbours (star to mesh), so every entry is a sum of positive terms
//! and nothing cancels; nodes with few neighbours go first, which keeps the chain of champions with its many rejected
//! candidates sparse. Entries of the inverse are had for the pattern of the factor alone (Takahashi, Fagan and Chen 1973).

use std::collections::{BTreeMap, BTreeSet};

/// A network to be solved; node numbers are `0..nodes`.
#[derive(Clone, Debug)]
pub(super) struct Network {
    edges: Vec<BTreeMap<usize, f64>>,
    ground: Vec<f64>,
}

impl Network {
    /// Nodes that nothing connects yet.
    pub(super) fn new(nodes: usize) -> Network {
        Network {
            edges: vec![BTreeMap::new(); nodes],
            ground: vec![0.0; nodes],
        }
    }

    /// Connects two nodes, or one with the ground where the other is `None`.
    pub(super) fn connect(&mut self, one: Option<usize>, other: Option<usize>, conductance: f64) {
        match (one, other) {
            (Some(a), Some(b)) => {
                *self.edges[a].entry(b).or_default() += conductance;
                *self.edges[b].entry(a).or_default() += conductance;
            }
            (Some(a), None) | (None, Some(a)) => self.ground[a] += conductance,
            (None, None) => {}
        }
    }

    /// Eliminates every node. Each must have a way to the ground.
    pub(super) fn factor(mut self) -> Factor {
        let degrees = self.edges.iter().enumerate();
        let mut queue: BTreeSet<(usize, usize)> = degrees.map(|(node, edges)| (edges.len(), node)).collect();
        let mut columns = Vec::with_capacity(queue.len());
        while let Some((_, node)) = queue.pop_first() {
            let edges = std::mem::take(&mut self.edges[node]);
            let ground = self.ground[node];
            let pivot = ground + edges.values().sum::<f64>();
            for (&near, &c) in &edges {
                queue.remove(&(self.edges[near].len(), near));
                self.edges[near].remove(&node);
                self.ground[near] += c * ground / pivot;
                for (&far, &d) in edges.iter().filter(|(far, _)| **far != near) {
                    *self.edges[near].entry(far).or_default() += c * d / pivot;
                }
                queue.insert((self.edges[near].len(), near));
            }
            let shares = edges.into_iter().map(|(near, c)| (near, c / pivot)).collect();
            columns.push(Column { node, pivot, shares });
        }
        Factor { columns }
    }
}

/// One eliminated node.
#[derive(Clone, Debug)]
struct Column {
    node: usize,
    /// Its conductance to everything when it was eliminated.
    pivot: f64,
    /// The part of it that each neighbour of then has.
    shares: Vec<(usize, f64)>,
}

/// A factored network, in the order of elimination.
#[derive(Clone, Debug)]
pub(super) struct Factor {
    columns: Vec<Column>,
}

impl Factor {
    /// Turns a right-hand side (currents) into the solution (potentials) in place.
    pub(super) fn solve(&self, values: &mut [f64]) {
        for column in &self.columns {
            let value = values[column.node];
            for &(near, share) in &column.shares {
                values[near] += share * value;
            }
        }
        for column in self.columns.iter().rev() {
            let from_near: f64 = column.shares.iter().map(|&(near, share)| share * values[near]).sum();
            values[column.node] = values[column.node] / column.pivot + from_near;
        }
    }

    /// One column of the inverse.
    pub(super) fn inverse_column(&self, node: usize) -> Vec<f64> {
        let mut values = vec![0.0; self.columns.len()];
        values[node] = 1.0;
        self.solve(&mut values);
        values
    }

    /// The diagonal of the inverse: variances.
    pub(super) fn inverse_diagonal(&self) -> Vec<f64> {
        let key = |a: usize, b: usize| (a.min(b), a.max(b));
        let mut inverse: BTreeMap<(usize, usize), f64> = BTreeMap::new();
        let mut diagonal = vec![0.0; self.columns.len()];
        for Column { node, pivot, shares } in self.columns.iter().rev() {
            let mut own = 1.0 / pivot;
            for &(near, share) in shares {
                let entry: f64 = shares
                    .iter()
                    .map(|&(far, part)| {
                        // Neighbours of an eliminated node are joined, so their entry is part of the pattern.
                        let known = if far == near {
                            diagonal[near]
                        } else {
                            inverse[&key(near, far)]
                        };
                        part * known
                    })
                    .sum();
                inverse.insert(key(*node, near), entry);
                own += share * entry;
            }
            diagonal[*node] = own;
        }
        diagonal
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;

    #[test]
    fn a_chain_of_resistors_adds_up() {
        let mut network = Network::new(2);
        network.connect(None, Some(0), 0.5);
        network.connect(Some(0), Some(1), 0.25);
        let factor = network.factor();
        let diagonal = factor.inverse_diagonal();
        assert!((diagonal[0] - 2.0).abs() < 1e-12 && (diagonal[1] - 6.0).abs() < 1e-12);
        assert!((factor.inverse_column(0)[1] - 2.0).abs() < 1e-12);
    }

    #[test]
    fn the_inverse_times_the_matrix_is_one_on_random_networks() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        for nodes in 1..30 {
            let mut network = Network::new(nodes);
            for node in 0..nodes {
                // The first edge of each node leads towards the ground.
                network.connect((0..node).next_back(), Some(node), rng.random_range(0.01..100.0));
            }
            for _ in 0..nodes {
                let (a, b) = (rng.random_range(0..nodes), rng.random_range(0..nodes));
                if a != b {
                    network.connect(Some(a), Some(b), rng.random_range(0.01..100.0));
                }
            }
            let factor = network.clone().factor();
            let diagonal = factor.inverse_diagonal();
            for node in 0..nodes {
                let column = factor.inverse_column(node);
                assert!((column[node] / diagonal[node] - 1.0).abs() < 1e-9);
                for row in 0..nodes {
                    let edges = &network.edges[row];
                    let own = network.ground[row] + edges.values().sum::<f64>();
                    let others: f64 = edges.iter().map(|(&near, c)| c * column[near]).sum();
                    let wanted = f64::from(u8::from(row == node));
                    assert!((own * column[row] - others - wanted).abs() < 1e-9, "{nodes} nodes");
                }
            }
        }
    }
}
