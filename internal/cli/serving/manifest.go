package serving

import (
	"errors"
	"fmt"
	"os"
	"regexp"

	"github.com/spf13/cobra"

	"scrimp/internal/lib/weburl"
	"scrimp/internal/work/serving"
	"scrimp/internal/work/serving/manifest"
)

var (
	deploymentName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$`)
	metricName     = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]{0,199}$`)
)

// manifestFlags checks the flags of the manifest before anything is simulated.
func (f *flags) manifestFlags(cmd *cobra.Command) error {
	given := cmd.Flags().Changed
	if f.form == "" {
		for _, name := range []string{"output", "deployment", "metric", "prometheus"} {
			if given(name) {
				return fmt.Errorf("--%s says what stands in a manifest: add --manifest hpa or --manifest keda", name)
			}
		}
		return nil
	}
	_, isURL := weburl.Parse(f.prometheus)
	switch {
	case f.form != "hpa" && f.form != "keda":
		return fmt.Errorf("--manifest %q is none of hpa, keda", f.form)
	case f.output == "":
		return errors.New("--manifest needs --output FILE")
	case f.form == "hpa" && given("prometheus"):
		return errors.New("--prometheus is for --manifest keda: an HPA reads the metrics API of the cluster")
	case !deploymentName.MatchString(f.deployment):
		return fmt.Errorf("--deployment %.80q is not the name of a Kubernetes object, such as model-server", f.deployment)
	case !metricName.MatchString(f.metric):
		return fmt.Errorf("--metric %.80q is not the name of a metric, such as requests_in_flight", f.metric)
	case !isURL:
		return fmt.Errorf("--prometheus %.80q is not an address, such as http://prometheus-server.monitoring", f.prometheus)
	}
	if _, err := os.Lstat(f.output); err == nil {
		return fmt.Errorf("--output %s exists: choose another name, or remove it", f.output)
	}
	return nil
}

// manifest writes the rule that comes first, and notes what the manifest does not do as the plan says.
func (a *app) manifest(f flags, best serving.Choice) error {
	if f.form == "" {
		return nil
	}
	d := manifest.Deployment{Name: f.deployment, Metric: f.metric, Prometheus: f.prometheus}
	write := manifest.HPA
	if f.form == "keda" {
		write = manifest.KEDA
	}
	rule := best.Outcome.Rule
	d.Notes = manifest.Cautions(rule, f.form == "keda", best.Sure, d)
	text, ok := write(rule, best.Engine.Slots, d)
	switch {
	case best.Function != nil:
		return fmt.Errorf("no manifest was written: the cheapest plan is the function %s. To get one for machines, leave "+
			"--serverless out", best.Name())
	case !ok:
		return fmt.Errorf("--manifest hpa: an HPA cannot express %q: use --manifest keda, or --rule autoscale", rule)
	}
	out, err := os.OpenFile(f.output, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("write the manifest: %w", err)
	}
	_, err = out.WriteString(text)
	if err := errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("write %s: %w", f.output, err)
	}
	for _, n := range d.Notes {
		a.Notef("note: %s: %s\n", f.output, n)
	}
	return nil
}
