//! An exponential moving average of everything that a network is: its trained parameters and its batch-norm statistics.
//!
//! With a learning rate that stays the same, the newest weights go on jumping about where training has brought them; their
//! average lies in the middle of that. It is what is published; training itself never looks at it.

use tch::TchError;

use crate::network::{Network, NetworkError};

/// The average of a network in training, itself a network.
#[derive(Debug)]
pub struct Average {
    network: Network,
    steps: u64,
}

impl Average {
    /// Begins with the network as it is now, or goes on after so many steps once the saved average is restored into it.
    pub fn begin(network: &Network, steps: u64) -> Result<Average, NetworkError> {
        let device = network.parameters().device();
        Ok(Average {
            network: network.copy_to(device)?,
            steps,
        })
    }

    /// Takes in the network after a step.
    pub fn follow(&mut self, network: &Network, decay: f64) -> Result<(), TchError> {
        let share = 1.0 - kept(decay, self.steps);
        self.network.parameters().approach(network.parameters(), share)?;
        self.steps += 1;
        Ok(())
    }

    /// The averaged network.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Steps that were taken in.
    pub fn steps(&self) -> u64 {
        self.steps
    }
}

/// Share of the average that the next step leaves: less at first, so that what training began from is soon forgotten
/// (TensorFlow's `ExponentialMovingAverage` with `num_updates`).
fn kept(decay: f64, steps: u64) -> f64 {
    let steps = steps as f64;
    decay.min((1.0 + steps) / (10.0 + steps))
}

#[cfg(test)]
mod tests {
    use tch::Device;
    use tengen_games::AnyGame;
    use tengen_network::{Config, Shape, random_weights};

    use super::*;
    use crate::parameters::{read_values, write_values};

    #[test]
    fn an_average_reaches_back_no_further_than_it_is_old() {
        assert_eq!([0, 8, 90].map(|steps| kept(0.999, steps)), [0.1, 0.5, 0.91]);
        assert_eq!(kept(0.999, 1_000_000), 0.999);
        assert_eq!(kept(0.5, 90), 0.5);
    }

    #[test]
    fn weights_and_statistics_are_averaged_alike_and_the_network_stays_as_it_is() {
        tch::set_num_threads(1);
        let game = AnyGame::parse("tic-tac-toe").unwrap();
        let config = Config {
            blocks: 1,
            channels: 8,
            ..Config::default()
        };
        let shape = Shape::new(game.spec(), &config).unwrap();
        let network = Network::new(&shape, &random_weights(&shape, 3), Device::Cpu).unwrap();
        let fill = |value: f32| {
            for parameter in network.parameters().all() {
                write_values(&parameter.value, &vec![value; parameter.value.numel()]).unwrap();
            }
        };
        fill(1.0);
        let mut average = Average::begin(&network, 0).unwrap();
        // 0.1 of what was there and 0.9 of what is new, then 2/11 and 9/11.
        fill(11.0);
        average.follow(&network, 0.9).unwrap();
        fill(21.0);
        average.follow(&network, 0.9).unwrap();
        assert_eq!(average.steps(), 2);
        let expected = 10.0 * 2.0 / 11.0 + 21.0 * 9.0 / 11.0;
        for parameter in average.network().parameters().all() {
            let values = read_values(&parameter.value).unwrap();
            assert!(
                values.iter().all(|value| (value - expected).abs() < 1e-4),
                "{}: {values:?}",
                parameter.name
            );
        }
        let newest = network
            .parameters()
            .all()
            .map(|parameter| read_values(&parameter.value).unwrap());
        assert!(newest.flatten().all(|value| value == 21.0));
    }
}
