// SPDX-License-Identifier: Apache-2.0
//! Reads a digit with a bundle, from Rust: NNDEPLOY_LIB=FOLDER cargo run --release -- digits.nnd

mod nndeploy;

use nndeploy::{Error, Program};
use std::process::ExitCode;

fn read(path: &str) -> Result<(usize, f32), Error> {
    let mut pixels = [0_f32; 64];
    for (i, pixel) in pixels.iter_mut().enumerate() {
        *pixel = if (3..5).contains(&(i % 8)) { 16.0 } else { 0.0 }; // an upright stroke
    }
    let program = Program::open(path, 1)?;
    let mut call = program.call()?;
    call.set("image", &[1, 1, 8, 8], &pixels)?;
    call.run()?;
    let scores = call.output("probabilities")?;
    let best = (0..scores.len()).max_by(|&a, &b| scores[a].total_cmp(&scores[b]));
    Ok(best.map_or((0, 0.0), |digit| (digit, scores[digit])))
}

fn main() -> ExitCode {
    let path = std::env::args().nth(1).unwrap_or_else(|| "digits.nnd".to_owned());
    match read(&path) {
        Ok((digit, probability)) => {
            println!("{digit}, probability {probability:.4}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(u8::try_from(error.code).unwrap_or(1))
        }
    }
}
