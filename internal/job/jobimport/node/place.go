package node

import "strings"

// Place returns the region or zone of an infra, such as aws/us-east-1; false: it names none, or is a cluster of
// Kubernetes.
func Place(infra string) (string, bool) {
	parts := strings.Split(infra, "/")
	place := parts[len(parts)-1]
	cluster := strings.HasPrefix(infra, "k8s") || strings.HasPrefix(infra, "kubernetes")
	return place, len(parts) > 1 && place != "*" && !cluster
}
