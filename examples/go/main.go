// SPDX-License-Identifier: Apache-2.0

// Digits reads a digit with a bundle: CGO_CFLAGS names the folder of nndeploy.h, CGO_LDFLAGS that of libnndeploy.a.
package main

import (
	"errors"
	"fmt"
	"os"
)

func read(path string) (int, float32, error) {
	pixels := make([]float32, 64)
	for i := range pixels {
		if column := i % 8; column > 2 && column < 5 { // an upright stroke
			pixels[i] = 16
		}
	}
	program, err := Open(path, 1)
	if err != nil {
		return 0, 0, err
	}
	defer program.Close()
	call, err := program.NewCall()
	if err != nil {
		return 0, 0, err
	}
	defer call.Close()
	if err := call.Set("image", []int64{1, 1, 8, 8}, pixels); err != nil {
		return 0, 0, err
	}
	if err := call.Run(); err != nil {
		return 0, 0, err
	}
	_, scores, err := call.Output("probabilities")
	if err != nil {
		return 0, 0, err
	}
	best := 0
	for digit, score := range scores {
		if score > scores[best] {
			best = digit
		}
	}
	return best, scores[best], nil
}

func main() {
	path := "digits.nnd"
	if len(os.Args) > 1 {
		path = os.Args[1]
	}
	digit, probability, err := read(path)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code := 1
		var known *Error
		if errors.As(err, &known) {
			code = known.Code
		}
		os.Exit(code)
	}
	fmt.Printf("%d, probability %.4f\n", digit, probability)
}
