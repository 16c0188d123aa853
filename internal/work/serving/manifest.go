package serving

import (
	"fmt"
	"strings"
	"time"
)

// A Deployment is what a manifest scales, and where it reads the load.
type Deployment struct {
	Name       string
	Metric     string // requests that wait or are being answered, of one pod
	Prometheus string // address, for KEDA
}

// HPA writes a HorizontalPodAutoscaler of a rule, and is false where it cannot express the rule: it keeps one pod at
// least and knows no hours. A pod is a machine.
func HPA(r Rule, slots int, d Deployment) (string, bool) {
	if r.Kind == Serverless || r.Min < 1 || r.WarmMin > 0 {
		return "", false
	}
	return fmt.Sprintf(`# %s
# Each pod reports %s: the requests that wait for it or that it answers.
apiVersion: autoscaling/v2
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
`, r, d.Metric, d.Name, d.Name, r.Min, r.Max, whole(r.Keep, 3600), d.Metric, r.Batch*slots), true
}

// KEDA writes a ScaledObject of a rule. A pod is a machine. It is false for functions.
func KEDA(r Rule, slots int, d Deployment) (string, bool) {
	if r.Kind == Serverless {
		return "", false
	}
	var b strings.Builder
	fmt.Fprintf(&b, `# %s
# %s is the number of requests that wait for a pod or that it answers.
apiVersion: keda.sh/v1alpha1
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
`, r, d.Metric, d.Name, d.Name, r.Min, r.Max, max(1, whole(r.Poll, 3600)), whole(r.Keep, 86400), whole(r.Keep, 3600),
		d.Prometheus, d.Metric, r.Batch*slots)
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
func whole(d time.Duration, most int64) int64 { return min(most, int64((d+time.Second-1)/time.Second)) }

// String says what the rule is, in one line.
func (r Rule) String() string {
	text := string(r.Kind)
	if r.Batch > 1 {
		text += fmt.Sprintf(", batches of up to %d", r.Batch)
		if r.Wait > 0 {
			text += fmt.Sprintf(" that wait up to %s", short(r.Wait))
		}
	}
	text += ", machines: " + r.Machines()
	if r.WarmMin > 0 {
		text += fmt.Sprintf(", %d at least in the hours %s", r.WarmMin, r.Warm)
	}
	return text
}

// Machines returns how many machines a rule has, such as 2 or 0-4.
func (r Rule) Machines() string {
	if r.Min == r.Max {
		return fmt.Sprint(r.Max)
	}
	return fmt.Sprintf("%d-%d", r.Min, r.Max)
}
