// SPDX-License-Identifier: Apache-2.0
//! A safe interface over nndeploy.h, as far as this example needs it: inputs and outputs of float32.
//!
//! A program may be used by several threads at once, a call by one at a time: so `Program` is `Sync`, `Call` is not, and
//! the borrow checker keeps a program open as long as its calls, and an output from outliving the next run.

use std::error;
use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::fmt;
use std::marker::PhantomData;
use std::ptr::{null, NonNull};
use std::slice;

#[repr(C)]
struct RawError {
    code: c_int,
    text: [c_char; 400],
}

#[repr(C)]
struct RawTensor {
    dtype: c_int,
    rank: c_int,
    shape: *const i64,
    data: *const c_void,
}

#[repr(C)]
struct RawOptions {
    threads: c_int,
}

#[repr(C)]
struct RawProgram {
    _private: [u8; 0],
}

#[repr(C)]
struct RawCall {
    _private: [u8; 0],
}

extern "C" {
    fn nnd_open(path: *const c_char, options: *const RawOptions, error: *mut RawError) -> *mut RawProgram;
    fn nnd_close(program: *mut RawProgram);
    fn nnd_call_new(program: *mut RawProgram, error: *mut RawError) -> *mut RawCall;
    fn nnd_call_free(call: *mut RawCall);
    fn nnd_set_input(call: *mut RawCall, name: *const c_char, value: *const RawTensor, error: *mut RawError) -> c_int;
    fn nnd_run(call: *mut RawCall, error: *mut RawError) -> c_int;
    fn nnd_get_output(call: *const RawCall, name: *const c_char, value: *mut RawTensor, error: *mut RawError) -> c_int;
}

const FLOAT32: c_int = 0;
const MAX_RANK: usize = 8;

/// A code, which is the exit code of the command, and one line.
#[derive(Debug)]
pub struct Error {
    pub code: i32,
    text: String,
}

impl Error {
    const BAD_DATA: i32 = 65;

    fn bad_data(text: &str) -> Self {
        Error {
            code: Self::BAD_DATA,
            text: text.to_owned(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl error::Error for Error {}

impl RawError {
    fn new() -> Self {
        RawError {
            code: 0,
            text: [0; 400],
        }
    }

    fn told(&self) -> Error {
        let text = unsafe { CStr::from_ptr(self.text.as_ptr()) };
        Error {
            code: self.code,
            text: text.to_string_lossy().into_owned(),
        }
    }
}

fn c_text(text: &str) -> Result<CString, Error> {
    CString::new(text).map_err(|_| Error::bad_data("a zero byte in a name"))
}

/// A bundle that is open.
pub struct Program(NonNull<RawProgram>);

unsafe impl Send for Program {}
unsafe impl Sync for Program {}

impl Program {
    /// Opens a bundle; `threads` is how many a call takes, 0 for one on each processor.
    pub fn open(path: &str, threads: i32) -> Result<Self, Error> {
        let mut error = RawError::new();
        let raw = unsafe { nnd_open(c_text(path)?.as_ptr(), &RawOptions { threads }, &mut error) };
        NonNull::new(raw).map(Program).ok_or_else(|| error.told())
    }

    pub fn call(&self) -> Result<Call<'_>, Error> {
        let mut error = RawError::new();
        let raw = unsafe { nnd_call_new(self.0.as_ptr(), &mut error) };
        NonNull::new(raw)
            .map(|raw| Call {
                raw,
                inputs: PhantomData,
            })
            .ok_or_else(|| error.told())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        unsafe { nnd_close(self.0.as_ptr()) }
    }
}

/// Inputs, a run, and its outputs; `'a` is how long the program and the inputs stay.
pub struct Call<'a> {
    raw: NonNull<RawCall>,
    inputs: PhantomData<&'a ()>,
}

unsafe impl Send for Call<'_> {}

impl<'a> Call<'a> {
    /// Gives an input its elements, which are borrowed, not copied.
    pub fn set(&mut self, name: &str, shape: &[i64], data: &'a [f32]) -> Result<(), Error> {
        let count = shape.iter().try_fold(1_i64, |count, &size| count.checked_mul(size));
        if shape.len() > MAX_RANK || count.and_then(|count| usize::try_from(count).ok()) != Some(data.len()) {
            return Err(Error::bad_data("the elements are not as many as the shape says"));
        }
        let (rank, data) = (shape.len() as c_int, data.as_ptr().cast());
        let value = RawTensor {
            dtype: FLOAT32,
            rank,
            shape: shape.as_ptr(),
            data,
        };
        let mut error = RawError::new();
        match unsafe { nnd_set_input(self.raw.as_ptr(), c_text(name)?.as_ptr(), &value, &mut error) } {
            0 => Err(error.told()),
            _ => Ok(()),
        }
    }

    pub fn run(&mut self) -> Result<(), Error> {
        let mut error = RawError::new();
        match unsafe { nnd_run(self.raw.as_ptr(), &mut error) } {
            0 => Err(error.told()),
            _ => Ok(()),
        }
    }

    /// Returns the elements of an output of the last run, in the order of ONNX.
    pub fn output(&self, name: &str) -> Result<&[f32], Error> {
        let mut error = RawError::new();
        let mut value = RawTensor {
            dtype: 0,
            rank: 0,
            shape: null(),
            data: null(),
        };
        if unsafe { nnd_get_output(self.raw.as_ptr(), c_text(name)?.as_ptr(), &mut value, &mut error) } == 0 {
            return Err(error.told());
        }
        if value.dtype != FLOAT32 {
            return Err(Error::bad_data("the output is not of float32"));
        }
        let rank = value.rank as usize;
        let count = if rank == 0 {
            1
        } else {
            unsafe { slice::from_raw_parts(value.shape, rank) }.iter().product()
        };
        Ok(if count == 0 {
            &[]
        } else {
            unsafe { slice::from_raw_parts(value.data.cast(), count as usize) }
        })
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        unsafe { nnd_call_free(self.raw.as_ptr()) }
    }
}
