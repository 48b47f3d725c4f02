//! Prints a signature for the whole development account: for programs that take one and cannot be told where an emulator
//! listens. Run by `cargo xtask program rclone`.

fn main() {
    println!("{}", lazuli_trial::blobs::account_sas());
}
