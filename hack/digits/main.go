// Command digits makes a small classifier of digits as an ONNX model. It measures the accuracy of such a model with the
// evaluator of the tests, which says nothing about speed:
//
//	go run ./hack/digits make digits.onnx
//	go run ./hack/digits eval digits.onnx
package main

import (
	"errors"
	"fmt"
	"os"

	"scrimp/internal/test/onnxrun"
)

const (
	trainSeed = 7
	testSeed  = 99
	samples   = 1000
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "digits:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 || args[0] != "make" && args[0] != "eval" {
		return errors.New("usage: digits make FILE | digits eval FILE")
	}
	if args[0] == "make" {
		return os.WriteFile(args[1], onnxrun.Classifier(trainSeed), 0o666)
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
