// Package manifest writes the objects with which Kubernetes scales a deployment as a rule says.
package manifest

import (
	"fmt"
	"strings"
	"time"

	"scrimp/internal/lib/draw"
	"scrimp/internal/work/serving/simulation"
)

// A Deployment is what a manifest scales, and where it reads the load.
type Deployment struct {
	Name       string
	Metric     string   // requests that wait or are being answered, of one pod
	Prometheus string   // address, for KEDA
	Notes      []string // what stands above the manifest as comments
}

// longestStable is the longest span of stabilizationWindowSeconds that Kubernetes accepts.
const longestStable = time.Hour

// Cautions returns what a manifest of a rule does not do as the plan says, or takes for granted. keda is false for an
// HPA, and sure is false where only the middle of an estimate meets the target.
func Cautions(r simulation.Rule, keda, sure bool, d Deployment) (list []string) {
	if !sure {
		list = append(list, "the plan is uncertain: with a slow server it misses the latency target. Measure the model "+
			"before you rely on it")
	}
	if keda && r.Min == 0 && r.Kind != simulation.Serverless {
		list = append(list, fmt.Sprintf("with no pod running, no pod exports %s. Let the gateway or the queue in front of "+
			"the pods export it: it must count the requests that wait while there is no pod, or nothing starts one",
			d.Metric))
	}
	if r.Keep > longestStable {
		text := fmt.Sprintf("the plan keeps an idle machine for %s, and Kubernetes waits for %s at most before it removes "+
			"a pod", simulation.Short(r.Keep), simulation.Short(longestStable))
		if keda && r.Min == 0 {
			text += fmt.Sprintf("; only the last pod stays for %s (cooldownPeriod)", simulation.Short(min(r.Keep, 24*time.Hour)))
		}
		list = append(list, text)
	}
	return list
}

// comments writes the first lines of a manifest.
func (d Deployment) comments(r simulation.Rule, metric string) string {
	text := "# " + r.String() + "\n# " + d.Metric + " " + metric + "\n"
	for _, n := range d.Notes {
		for line := range strings.Lines(draw.Wrap("", "Note: "+n, 98)) {
			text += "# " + line
		}
	}
	return text
}

// HPA writes a HorizontalPodAutoscaler of a rule, and is false where it cannot express the rule: it keeps one pod at
// least and knows no hours. A pod is a machine.
func HPA(r simulation.Rule, slots int, d Deployment) (string, bool) {
	if r.Kind == simulation.Serverless || r.Min < 1 || r.WarmMin > 0 {
		return "", false
	}
	return fmt.Sprintf(`%sapiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: %s
spec:
  scaleTargetRef:
    apiVersion: apps/v1
    kind: Deployment
    name: %s
  minReplicas: %d
  maxReplicas: %d
  behavior:
    scaleUp:
      stabilizationWindowSeconds: 0
    scaleDown:
      stabilizationWindowSeconds: %d
  metrics:
    - type: Pods
      pods:
        metric:
          name: %s
        target:
          type: AverageValue
          averageValue: "%d"
`, d.comments(r, "is what each pod reports: the requests that wait for it or that it answers."), d.Name, d.Name, r.Min,
		r.Max, whole(r.Keep, longestStable), d.Metric, r.Batch*slots), true
}

// KEDA writes a ScaledObject of a rule. A pod is a machine. It is false for functions.
func KEDA(r simulation.Rule, slots int, d Deployment) (string, bool) {
	if r.Kind == simulation.Serverless {
		return "", false
	}
	var b strings.Builder
	fmt.Fprintf(&b, `%sapiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata:
  name: %s
spec:
  scaleTargetRef:
    name: %s
  minReplicaCount: %d
  maxReplicaCount: %d
  pollingInterval: %d
  cooldownPeriod: %d
  advanced:
    horizontalPodAutoscalerConfig:
      behavior:
        scaleDown:
          stabilizationWindowSeconds: %d
  triggers:
    - type: prometheus
      metadata:
        serverAddress: %q
        query: sum(%s)
        threshold: "%d"
`, d.comments(r, "is the number of requests that wait for a pod or that it answers."), d.Name, d.Name, r.Min, r.Max,
		max(1, whole(r.Poll, 24*time.Hour)), whole(r.Keep, 24*time.Hour), whole(r.Keep, longestStable), d.Prometheus,
		d.Metric, r.Batch*slots)
	if r.WarmMin > 0 {
		fmt.Fprintf(&b, `    - type: cron
      metadata:
        timezone: Etc/UTC
        start: 0 %d * * *
        end: 0 %d * * *
        desiredReplicas: "%d"
`, r.Warm.From, r.Warm.To, r.WarmMin)
	}
	return b.String(), true
}

// whole returns a span in whole seconds, rounded up, and at most what the field takes.
func whole(d, most time.Duration) int64 { return int64((min(d, most) + time.Second - 1) / time.Second) }
