// Package sample takes a part of the data of a pipeline, and predicts from the run on that part what the run on all of
// it takes.
package sample

import (
	"fmt"
	"math/big"
	"strings"

	"scrimp/internal/work/pipeline"
)

// Part is a share of the data in millionths.
type Part int64

// The bounds of a part. Whole is all of the data.
const (
	Whole Part = 1_000_000
	Least      = Whole / 10_000 // 0.01 %
	Most       = Whole / 2
)

// Parse reads a percentage such as 1%, or a fraction such as 0.01.
func Parse(text string) (Part, error) {
	number, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	v, err := pipeline.Decimal(strings.TrimSpace(number))
	if err != nil {
		return 0, fmt.Errorf("is %.40q: write a percentage such as 1%%", text)
	}
	scale := int64(Whole)
	if percent {
		scale /= 100
	}
	v.Mul(v, big.NewRat(scale, 1))
	switch {
	case v.Cmp(big.NewRat(int64(Least), 1)) < 0 || v.Cmp(big.NewRat(int64(Most), 1)) > 0:
		return 0, fmt.Errorf("is %.40q: write a percentage from 0.01%% to 50%%, such as 1%%", text)
	case !v.IsInt():
		return 0, fmt.Errorf("is %.40q: write a percentage with at most four decimal places, such as 0.0125%%", text)
	}
	return Part(v.Num().Int64()), nil
}

// Fraction is the part as a decimal without zeros at its end, such as 0.01.
func (p Part) Fraction() string { return pipeline.Written(big.NewRat(int64(p), int64(Whole))) }

// Percent is the part as a percentage, such as 1%.
func (p Part) Percent() string { return pipeline.Written(big.NewRat(int64(p), int64(Whole)/100)) + "%" }

// of is the part of n things, rounded up: at least one of any.
func (p Part) of(n int) int { return int((int64(n)*int64(p) + int64(Whole) - 1) / int64(Whole)) }

// Fractions reads one or two parts, the smaller first, and returns them as decimals.
func Fractions(texts []string) (list []string, err error) {
	before := Part(0)
	for _, text := range texts {
		p, err := Parse(text)
		if err != nil {
			return nil, err
		}
		if p <= before {
			return nil, fmt.Errorf("%s comes after %s: write the smaller part first", p.Percent(), before.Percent())
		}
		before, list = p, append(list, p.Fraction())
	}
	if len(list) < 1 || len(list) > 2 {
		return nil, fmt.Errorf("has %d parts: write one or two, such as 1%%", len(list))
	}
	return list, nil
}
