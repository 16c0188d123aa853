package pipeline

import (
	"cmp"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"scrimp/internal/work/pipeline/workpath"
)

// Gate lets a stage begin only if a metric of an earlier stage is good enough.
type Gate struct {
	Metric string `json:"metric"` // STAGE.NAME, or the NAME alone where one stage that comes before has it
	// Min and Max bound it, as written decimals; a value at the bound passes.
	Min string `json:"min,omitempty"`
	Max string `json:"max,omitempty"`
	// MinGain is how much better than Against the metric must be, at least: a decimal in units of the metric, or
	// percent. A gain of exactly MinGain passes. "": the gate compares with nothing.
	MinGain string `json:"min_gain,omitempty"`
	// Against is "deployed" for the version that is in place, or a decimal. "" with MinGain means "deployed".
	Against string `json:"against,omitempty"`
	Goal    string `json:"goal,omitempty"` // "maximize" or "minimize"; "" means "maximize"
	// Relative makes MinGain a percentage of the value compared with. Otherwise one percent is 0.01, for metrics that
	// are fractions from 0 to 1.
	Relative bool `json:"relative,omitempty"`
	// Confidence is such as "95%": the lower bound of the gain's interval at that confidence counts, not the gain
	// itself. "": the gain counts.
	Confidence string `json:"confidence,omitempty"`
}

// AgainstDeployed is the Against of a gate that compares with the version in place.
const AgainstDeployed = "deployed"

// The goals of a gate.
const (
	Maximize = "maximize"
	Minimize = "minimize"
)

// maxGates bounds the gates of a stage.
const maxGates = 20

// versus is Against with its default.
func (g *Gate) versus() string {
	if g.MinGain != "" && g.Against == "" {
		return AgainstDeployed
	}
	return g.Against
}

// All returns the gates of a stage.
func (s *Stage) All() []Gate {
	if s.Gate != nil {
		return []Gate{*s.Gate}
	}
	return s.Gates
}

// ComparesDeployed reports whether a gate of the stage compares with the version in place.
func (s *Stage) ComparesDeployed() bool {
	return slices.ContainsFunc(s.All(), func(g Gate) bool { return g.versus() == AgainstDeployed })
}

// deployStage is the stage that deploys if no stage says deploy.
const deployStage = "deploy"

// Deploys is the position of the stage that puts a version of the model in place; -1: the pipeline has none.
func (s *Spec) Deploys() int {
	if i := slices.IndexFunc(s.Stages, func(x Stage) bool { return x.Deploy }); i >= 0 {
		return i
	}
	return slices.IndexFunc(s.Stages, func(x Stage) bool { return x.MayDeploy() })
}

// checkExamples reports what is wrong with the file of examples, and gives its path its one form.
func (s *Stage) checkExamples() error {
	if s.Examples == "" {
		return nil
	}
	c, err := workpath.Clean(s.Examples)
	if err != nil {
		return err
	}
	if s.Examples = c; !workpath.Within(s.Outs, c) {
		return fmt.Errorf("%s is none of its outs", c)
	}
	return nil
}

// MayDeploy reports whether the stage may be the one that deploys: Deploys decides.
func (s *Stage) MayDeploy() bool { return s.Deploy || s.Name == deployStage }

// nothingDeploys says why the gate of a stage cannot compare with the version in place.
func (s *Spec) nothingDeploys(i, deploys int) error {
	if deploys < 0 {
		return &Problem{s.Stages[i].Name, "gate", errors.New("it compares with the deployed version, and no stage deploys " +
			"one: write deploy: true in the stage that puts the model in place, or against: and a number")}
	}
	return &Problem{s.Stages[i].Name, "gate", fmt.Errorf("it compares with the deployed version after %s has replaced "+
		"that: write the gate in %s or before it", s.Stages[deploys].Name, s.Stages[deploys].Name)}
}

// checkGate reports what is wrong with a gate of a stage, and returns the stage and the metric that it judges; before
// says which stages come before it.
func (s *Spec) checkGate(i int, g *Gate, names map[string]int, before func(n int) bool) (stage int, metric string,
	err error) {
	x := &s.Stages[i]
	wrong := func(err error) (int, string, error) { return 0, "", &Problem{x.Name, "gate", err} }
	if g.Metric == "" || len(g.Metric) > MaxText {
		return wrong(errors.New("name the metric that it judges, such as metric: evaluate.accuracy"))
	}
	if err := cmp.Or(g.checkBounds(), g.checkGain()); err != nil {
		return wrong(err)
	}
	found, name := s.judged(i, g, names, before)
	switch {
	case len(found) == 0:
		return wrong(fmt.Errorf("no stage that comes before %s reports metrics: write metrics of that stage, and its name "+
			"before the metric's, such as evaluate.%s", x.Name, g.Metric))
	case len(found) > 1:
		names := []string{s.Stages[found[0]].Name, s.Stages[found[1]].Name}
		return wrong(fmt.Errorf("%s may be a metric of %s: write its stage before it, such as %s.%s", g.Metric,
			strings.Join(names, " and of "), names[1], g.Metric))
	case name == "":
		return wrong(fmt.Errorf("%s names no metric: write it behind the stage, such as %saccuracy", g.Metric, g.Metric))
	}
	judged := &s.Stages[found[0]]
	if first, _, dotted := strings.Cut(name, "."); dotted && name == g.Metric {
		if n, there := names[first]; there && len(s.Stages[n].Metrics) == 0 {
			return wrong(fmt.Errorf("the stage %s reports no metrics: write its metrics, or %s.%s for the metric of %s", first,
				judged.Name, g.Metric, judged.Name))
		}
	}
	if g.Confidence != "" && judged.Examples == "" {
		return wrong(fmt.Errorf("confidence needs the value of each example, and %s names no file of them: write "+
			"examples: FILE in %s, or leave confidence out", judged.Name, judged.Name))
	}
	return found[0], name, nil
}

// checkBounds reports what is wrong with Min and Max.
func (g *Gate) checkBounds() error {
	if g.Min == "" && g.Max == "" && g.MinGain == "" {
		for _, f := range []struct{ name, value string }{{"against", g.Against}, {"goal", g.Goal},
			{"confidence", g.Confidence}} {
			if f.value != "" {
				return fmt.Errorf("%s stands without min_gain: write how much better the metric must be, such as "+
					"min_gain: 0.5%%; 0 is no worse", f.name)
			}
		}
		return errors.New("give min, max or min_gain")
	}
	var bounds []*big.Rat
	for _, text := range []string{g.Min, g.Max} {
		if text == "" {
			continue
		}
		v, err := Decimal(text)
		if err != nil {
			return err
		}
		bounds = append(bounds, v)
	}
	if len(bounds) == 2 && bounds[0].Cmp(bounds[1]) > 0 {
		return fmt.Errorf("min %s is above max %s", g.Min, g.Max)
	}
	return nil
}

// checkNoGain refuses fields of a gain in a gate without MinGain.
func (g *Gate) checkNoGain() error {
	switch {
	case g.Against != "" || g.Goal != "" || g.Relative:
		return errors.New("against, goal and relative say what min_gain is of, and there is no min_gain: write it, such " +
			"as min_gain: 0.5%; 0 is no worse")
	case g.Confidence != "":
		return errors.New("confidence is that of a gain: write min_gain: 0 and against: with the bound")
	}
	return nil
}

// checkGain reports what is wrong with MinGain and the fields that say what it is of.
func (g *Gate) checkGain() error {
	if g.Goal != "" && g.Goal != Maximize && g.Goal != Minimize {
		return fmt.Errorf("goal %.60q is unknown: write maximize or minimize", g.Goal)
	}
	if g.MinGain == "" {
		return g.checkNoGain()
	}
	gain, percent, err := percentage(g.MinGain)
	switch {
	case err != nil:
		return fmt.Errorf("min_gain: %w: write a number such as 0.005, or a percentage such as 0.5%%", err)
	case gain.Sign() < 0:
		return fmt.Errorf("min_gain %s is negative: write 0 where the metric must not be worse", g.MinGain)
	case g.Relative && !percent && gain.Sign() > 0:
		return fmt.Errorf("min_gain %s with relative: true may mean percent or a factor: write it in percent, such as 0.5%%",
			g.MinGain)
	}
	if to := g.versus(); to != AgainstDeployed {
		v, err := Decimal(to)
		if err != nil {
			return fmt.Errorf("against: %w: write deployed, or a number such as 0.9", err)
		}
		if err := g.ambiguous(v); err != nil {
			return err
		}
	}
	if g.Confidence == "" {
		return nil
	}
	_, err = g.Confident()
	return err
}

// Confident is Confidence as a fraction.
func (g *Gate) Confident() (*big.Rat, error) {
	c, percent, err := percentage(g.Confidence)
	switch {
	case err != nil || !percent:
		return nil, fmt.Errorf("confidence %.60q is no percentage: write one such as 95%%", g.Confidence)
	case c.Cmp(big.NewRat(50, 100)) < 0 || c.Cmp(big.NewRat(999, 1000)) > 0:
		return nil, fmt.Errorf("confidence %.60s is out of bounds: write 50%% to 99.9%%", g.Confidence)
	}
	return c, nil
}

// ambiguous reports that nobody can say what a percentage means for a metric with this value.
func (g *Gate) ambiguous(v *big.Rat) error {
	gain, percent, err := percentage(g.MinGain)
	switch {
	case err != nil:
		return err
	case !percent || gain.Sign() == 0:
	case g.Relative && v.Sign() == 0:
		return fmt.Errorf("min_gain %s is a share of the value compared with, which is 0: write relative: false and "+
			"min_gain in units of the metric", g.MinGain)
	case !g.Relative && (v.Sign() < 0 || v.Cmp(big.NewRat(1, 1)) > 0):
		return fmt.Errorf("min_gain %s means points of a fraction from 0 to 1, and %s is none: write relative: true, or "+
			"min_gain in units of the metric", g.MinGain, written(v))
	}
	return nil
}

// Text is the gate in words, such as: evaluate.accuracy at least 0.005 better than deployed.
func (g *Gate) Text() string {
	text := g.Metric
	if g.Min != "" {
		text += " at least " + g.Min
	}
	if g.Max != "" {
		text += " at most " + g.Max
	}
	if g.MinGain == "" {
		return text
	}
	if g.Min != "" || g.Max != "" {
		text += ","
	}
	better := "higher"
	if g.Goal == Minimize {
		better = "lower"
	}
	switch gain, percent, err := percentage(g.MinGain); {
	case err == nil && gain.Sign() == 0:
		text += fmt.Sprintf(" no worse (%s is better) than %s", better, g.versus())
	case err == nil && percent && !g.Relative: // 0.5% is 0.005, and not a share of the other value
		text += fmt.Sprintf(" at least %s %s than %s", written(gain), better, g.versus())
	default:
		text += fmt.Sprintf(" at least %s %s than %s", g.MinGain, better, g.versus())
	}
	if g.Confidence != "" {
		text += " with " + g.Confidence + " confidence"
	}
	return text
}

// percentage reads a decimal or a percentage. The value of 0.5% is 0.005.
func percentage(text string) (v *big.Rat, percent bool, err error) {
	number, percent := strings.CutSuffix(text, "%")
	if percent {
		number = strings.TrimRight(number, " ")
	}
	if v, err = Decimal(number); err != nil {
		return nil, false, err
	}
	if percent {
		v.Quo(v, big.NewRat(100, 1))
	}
	return v, percent, nil
}

// written is a decimal without the zeros at its end. A value that has no end is cut after 12 digits.
func written(v *big.Rat) string {
	digits, exact := v.FloatPrec()
	if !exact {
		digits = 12
	}
	return v.FloatString(digits)
}
