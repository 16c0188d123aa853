// Command digits makes a small classifier of digits as an ONNX model. It measures the accuracy of such a model with the
// evaluator of the tests, which says nothing about speed:
//
//	go run ./hack/digits make digits.onnx
//	go run ./hack/digits calibrate FOLDER
//	go run ./hack/digits eval digits.onnx
package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"

	"scrimp/internal/test/onnxrun"
)

const (
	trainSeed          = 7
	calibrationSeed    = 5
	calibrationSamples = 200
	testSeed           = 99
	samples            = 1000
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "digits:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 || !slices.Contains([]string{"make", "calibrate", "eval"}, args[0]) {
		return errors.New("usage: digits make FILE | digits calibrate FOLDER | digits eval FILE")
	}
	switch args[0] {
	case "make":
		return os.WriteFile(args[1], onnxrun.Classifier(trainSeed), 0o666)
	case "calibrate":
		return calibrate(args[1])
	}
	text, err := os.ReadFile(args[1])
	if err != nil {
		return err
	}
	m, err := onnxrun.Load(text)
	if err != nil {
		return err
	}
	accuracy, err := onnxrun.Accuracy(m, onnxrun.Digits(samples, testSeed))
	if err != nil {
		return err
	}
	fmt.Printf("accuracy=%.4f\n", accuracy)
	return nil
}

// calibrate writes images as numpy.save does, for the ranges of int8-static.
func calibrate(folder string) error {
	digits := onnxrun.Digits(calibrationSamples, calibrationSeed)
	head := fmt.Sprintf("{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }", len(digits),
		len(digits[0].Pixels))
	text := binary.LittleEndian.AppendUint16([]byte("\x93NUMPY\x01\x00"), uint16(len(head)))
	text = append(text, head...)
	for i := range digits {
		for _, v := range digits[i].Pixels {
			text = binary.LittleEndian.AppendUint32(text, math.Float32bits(float32(v)))
		}
	}
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "digits.npy"), text, 0o666)
}
