// SPDX-License-Identifier: Apache-2.0

package main

// Programs and calls of nndeploy.h, as far as this example needs them: inputs and outputs of float32.

// #cgo LDFLAGS: -l:libnndeploy.a -lpthread -lm
// #include <stdlib.h>
// #include "nndeploy.h"
import "C"

import (
	"fmt"
	"math"
	"unsafe"
)

// An Error is a code, which is the exit code of the command, and one line.
type Error struct {
	Code int
	Text string
}

func (e *Error) Error() string { return e.Text }

func told(e *C.nnd_error) error { return &Error{int(e.code), C.GoString(&e.text[0])} }

func badData(format string, values ...any) error {
	return &Error{C.NND_BAD_DATA, fmt.Sprintf(format, values...)}
}

// A Program is a bundle that is open. Several goroutines may use it, each with a call of its own.
type Program struct{ raw *C.nnd_program }

// Open opens a bundle; threads is how many a call takes, 0 for one on each processor.
func Open(path string, threads int) (*Program, error) {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	var e C.nnd_error
	raw := C.nnd_open(name, &C.nnd_options{threads: C.int(threads)}, &e)
	if raw == nil {
		return nil, told(&e)
	}
	return &Program{raw}, nil
}

// Close closes a program, after its calls.
func (p *Program) Close() { C.nnd_close(p.raw) }

// A Call is inputs, a run, and its outputs; one goroutine at a time may use it.
type Call struct {
	raw    *C.nnd_call
	inputs map[string]unsafe.Pointer // copies in C's memory: C may not keep pointers to Go's
}

// NewCall returns a call of a program.
func (p *Program) NewCall() (*Call, error) {
	var e C.nnd_error
	raw := C.nnd_call_new(p.raw, &e)
	if raw == nil {
		return nil, told(&e)
	}
	return &Call{raw, map[string]unsafe.Pointer{}}, nil
}

// Close frees a call; what Output returned is no longer there.
func (c *Call) Close() {
	C.nnd_call_free(c.raw)
	for _, copied := range c.inputs {
		C.free(copied)
	}
}

// Set gives an input its elements, which are copied.
func (c *Call) Set(name string, shape []int64, elements []float32) error {
	count := int64(1)
	for _, size := range shape {
		if size < 0 || size > 0 && count > math.MaxInt64/size {
			return badData("%s: the shape %v is none", name, shape)
		}
		count *= size
	}
	if len(shape) > C.NND_MAX_RANK || count != int64(len(elements)) {
		return badData("%s: %d elements, which are not those of the shape %v", name, len(elements), shape)
	}
	key := C.CString(name)
	defer C.free(unsafe.Pointer(key))
	size := C.size_t(len(elements)) * C.sizeof_float
	copied := C.malloc(size + 1)
	copy(unsafe.Slice((*float32)(copied), len(elements)), elements)
	sizes := C.malloc(C.size_t(len(shape))*C.sizeof_int64_t + 1) // which C reads during the call alone
	defer C.free(sizes)
	copy(unsafe.Slice((*int64)(sizes), len(shape)), shape)
	value := C.nnd_tensor{dtype: C.NND_FLOAT32, rank: C.int(len(shape)), shape: (*C.int64_t)(sizes), data: copied}
	var e C.nnd_error
	if C.nnd_set_input(c.raw, key, &value, &e) == 0 {
		C.free(copied)
		return told(&e)
	}
	C.free(c.inputs[name])
	c.inputs[name] = copied
	return nil
}

// Run runs the chain.
func (c *Call) Run() error {
	var e C.nnd_error
	if C.nnd_run(c.raw, &e) == 0 {
		return told(&e)
	}
	return nil
}

// Output returns the shape and a copy of the elements of an output of the last run.
func (c *Call) Output(name string) ([]int64, []float32, error) {
	key := C.CString(name)
	defer C.free(unsafe.Pointer(key))
	var e C.nnd_error
	var value C.nnd_tensor
	if C.nnd_get_output(c.raw, key, &value, &e) == 0 {
		return nil, nil, told(&e)
	}
	if value.dtype != C.NND_FLOAT32 {
		return nil, nil, badData("%s: not of float32", name)
	}
	shape, count := []int64{}, int64(1)
	for _, size := range unsafe.Slice((*int64)(value.shape), int(value.rank)) {
		shape, count = append(shape, size), count*size
	}
	elements := append([]float32{}, unsafe.Slice((*float32)(value.data), count)...)
	return shape, elements, nil
}
