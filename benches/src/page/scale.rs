//! From figures to places in a picture, and where ticks go.

/// Straight or logarithmic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Equal differences are equally far apart.
    Linear,
    /// Equal ratios are.
    Log,
}

/// A mapping of `low..=high` to the places `from..=to`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    /// How the values in between are placed.
    pub shape: Shape,
    /// What is placed at `from`; positive where the shape is logarithmic.
    pub low: f64,
    /// What is placed at `to`; above `low`.
    pub high: f64,
    /// Place of `low`.
    pub from: f64,
    /// Place of `high`.
    pub to: f64,
}

impl Scale {
    /// The place of a value. What lies outside, as zero does on a logarithmic scale, is placed at
    /// the nearer end.
    pub fn place(&self, value: f64) -> f64 {
        let value = value.clamp(self.low, self.high);
        let part = match self.shape {
            Shape::Linear => (value - self.low) / (self.high - self.low),
            Shape::Log => (value / self.low).ln() / (self.high / self.low).ln(),
        };
        self.from + part * (self.to - self.from)
    }

    /// Round values inside, about `most` of them, ascending.
    pub fn ticks(&self, most: usize) -> Vec<f64> {
        match self.shape {
            Shape::Linear => linear_ticks(self.low, self.high, most),
            Shape::Log => log_ticks(self.low, self.high, most),
        }
    }
}

/// Multiples of 1, 2, 2.5 or 5 times a power of ten, at most `most`.
pub fn linear_ticks(low: f64, high: f64, most: usize) -> Vec<f64> {
    let wanted = (high - low) / most.max(2) as f64;
    let power = 10f64.powf(wanted.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0]
        .into_iter()
        .map(|digit| digit * power)
        .find(|step| step * (1.0 + 1e-9) >= wanted)
        .unwrap_or(10.0 * power);
    let first = (low / step - 1e-9).ceil() as i64;
    let last = (high / step + 1e-9).floor() as i64;
    (first..=last).map(|number| number as f64 * step).collect()
}

/// Powers of ten, with 2 and 5 between them if there is room; over a short range, round numbers.
pub fn log_ticks(low: f64, high: f64, most: usize) -> Vec<f64> {
    if high / low < 4.0 {
        return linear_ticks(low, high, most);
    }
    let sets: [&[f64]; 4] =
        [&[1.0, 1.5, 2.0, 3.0, 5.0, 7.0], &[1.0, 2.0, 5.0], &[1.0, 3.0], &[1.0]];
    let within = |digits: &&[f64]| decades(low, high, digits, 1);
    let found = sets.iter().map(within).find(|ticks| ticks.len() <= most);
    found.unwrap_or_else(|| {
        let many = (high / low).log10() as usize;
        decades(low, high, &[1.0], many.div_ceil(most.max(1)).max(2) as i32)
    })
}

/// `digits` times every `step`-th power of ten, inside.
fn decades(low: f64, high: f64, digits: &[f64], step: i32) -> Vec<f64> {
    let exponents = low.log10().floor() as i32..=high.log10().ceil() as i32;
    let aligned = exponents.filter(|exponent| exponent.rem_euclid(step) == 0);
    aligned
        .flat_map(|exponent| digits.iter().map(move |digit| digit * 10f64.powi(exponent)))
        .filter(|tick| (low * (1.0 - 1e-9)..=high * (1.0 + 1e-9)).contains(tick))
        .collect()
}

/// Powers of two, at most `most`, 1 among them if it is inside.
pub fn binary_ticks(low: f64, high: f64, most: usize) -> Vec<f64> {
    let first = (low.log2() - 1e-9).ceil() as i32;
    let last = (high.log2() + 1e-9).floor() as i32;
    let step = (1..).find(|step| (last - first) / step < most.max(1) as i32).unwrap_or(1);
    let aligned = (first..=last).filter(|exponent| exponent.rem_euclid(step) == 0);
    aligned.map(|exponent| 2f64.powi(exponent)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINEAR: Scale =
        Scale { shape: Shape::Linear, low: 0.0, high: 10.0, from: 100.0, to: 20.0 };
    const LOG: Scale = Scale { shape: Shape::Log, low: 0.5, high: 4096.0, from: 40.0, to: 300.0 };

    #[test]
    fn ends_are_placed_at_ends() {
        for scale in [LINEAR, LOG] {
            assert_eq!(scale.place(scale.low), scale.from);
            assert_eq!(scale.place(scale.high), scale.to);
        }
        assert_eq!(LINEAR.place(5.0), 60.0);
        let middle = LOG.place((LOG.low * LOG.high).sqrt());
        assert!((middle - 170.0).abs() < 1e-9, "{middle}");
    }

    #[test]
    fn what_is_outside_is_placed_at_the_nearer_end() {
        assert_eq!(LOG.place(0.0), LOG.from);
        assert_eq!(LOG.place(1e9), LOG.to);
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(linear_ticks(0.0, 100.0, 5), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        assert_eq!(log_ticks(0.4, 30.0, 7), [0.5, 1.0, 2.0, 5.0, 10.0, 20.0]);
        assert_eq!(log_ticks(0.1, 1e5, 7), [0.1, 1.0, 10.0, 100.0, 1e3, 1e4, 1e5]);
        assert_eq!(binary_ticks(0.5, 4e6, 6), [1.0, 16.0, 256.0, 4096.0, 65536.0, 1_048_576.0]);
    }

    #[test]
    fn ticks_ascend_inside_the_scale_and_are_not_too_many() {
        let lows = [0.001, 0.07, 0.5, 1.0, 3.3, 120.0];
        let spans = [1.1, 2.0, 3.9, 4.0, 17.0, 1e3, 1e7, 1e12];
        for (low, span) in lows.iter().flat_map(|&low| spans.map(|span| (low, span))) {
            let high = low * span;
            let all = [
                linear_ticks(low, high, 6),
                log_ticks(low, high, 6),
                if span >= 4.0 { binary_ticks(low, high, 6) } else { vec![low] },
            ];
            for ticks in all {
                assert!(!ticks.is_empty() && ticks.len() <= 7, "{low} {high} {ticks:?}");
                assert!(ticks.windows(2).all(|pair| pair[0] < pair[1]), "{ticks:?}");
                let slack = (high - low) * 1e-6;
                let inside = low - slack..=high + slack;
                assert!(ticks.iter().all(|tick| inside.contains(tick)), "{low} {high} {ticks:?}");
            }
        }
    }
}
