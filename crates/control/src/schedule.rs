//! The schedule: how many games an iteration takes and how deeply they are searched.

/// One row: it holds from its iteration until the next row's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// First iteration of this row, counted from 0.
    pub from_iteration: u32,
    /// Root visits of a self-play search, at least 1.
    pub simulations: u32,
    /// New self-play games that end an iteration, at least 1.
    pub games: u32,
}

/// Rows in ascending order of `from_iteration`; the first begins at 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    rows: Vec<Row>,
}

/// A schedule that cannot be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// There is no row.
    #[error("the schedule has no row")]
    Empty,
    /// The first row begins late.
    #[error("the first schedule row begins at iteration {0}, not at 0")]
    FirstRow(u32),
    /// Rows are out of order.
    #[error("schedule row at iteration {0} does not come after the row before it")]
    Order(u32),
    /// A row asks for no games or no search.
    #[error("schedule row at iteration {0} needs at least 1 game and 1 simulation")]
    Zero(u32),
}

impl Schedule {
    /// Checks the rows.
    pub fn new(rows: Vec<Row>) -> Result<Schedule, ScheduleError> {
        let first = rows.first().ok_or(ScheduleError::Empty)?;
        if first.from_iteration != 0 {
            return Err(ScheduleError::FirstRow(first.from_iteration));
        }
        if let Some(pair) = rows
            .windows(2)
            .find(|pair| pair[0].from_iteration >= pair[1].from_iteration)
        {
            return Err(ScheduleError::Order(pair[1].from_iteration));
        }
        if let Some(row) = rows.iter().find(|row| row.games == 0 || row.simulations == 0) {
            return Err(ScheduleError::Zero(row.from_iteration));
        }
        Ok(Schedule { rows })
    }

    /// The row that holds in `iteration`.
    pub fn row(&self, iteration: u32) -> Row {
        let after = self.rows.partition_point(|row| row.from_iteration <= iteration);
        self.rows[after.saturating_sub(1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(from_iteration: u32, games: u32) -> Row {
        Row {
            from_iteration,
            simulations: 10,
            games,
        }
    }

    #[test]
    fn a_row_holds_until_the_next_begins() {
        let schedule = Schedule::new(vec![row(0, 5), row(2, 7)]).unwrap();
        let games: Vec<u32> = (0..4).map(|iteration| schedule.row(iteration).games).collect();
        assert_eq!(games, [5, 5, 7, 7]);
    }

    #[test]
    fn faulty_schedules_are_refused() {
        assert_eq!(Schedule::new(vec![]), Err(ScheduleError::Empty));
        assert_eq!(Schedule::new(vec![row(1, 5)]), Err(ScheduleError::FirstRow(1)));
        assert_eq!(Schedule::new(vec![row(0, 5), row(0, 5)]), Err(ScheduleError::Order(0)));
        assert_eq!(Schedule::new(vec![row(0, 0)]), Err(ScheduleError::Zero(0)));
    }
}
