// SPDX-License-Identifier: Apache-2.0
//! Links libnndeploy.a, which lies in the folder that NNDEPLOY_LIB names.

fn main() {
    println!("cargo:rerun-if-env-changed=NNDEPLOY_LIB");
    let folder = std::env::var("NNDEPLOY_LIB").expect("NNDEPLOY_LIB is the folder of libnndeploy.a");
    println!("cargo:rustc-link-search=native={folder}");
    println!("cargo:rustc-link-lib=static=nndeploy");
}
