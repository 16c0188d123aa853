package pages

import (
	"strings"
	"testing"
	"time"

	"scrimp/client"
)

func TestUseCharts_DrawEachUnitByItself(t *testing.T) {
	t.Parallel()
	var node client.TelemetryNode
	for i := range 4 {
		v := []*float64{new(float64(i) / 4)}
		node.Buckets = append(node.Buckets, client.TelemetryBucket{At: now.Add(time.Duration(i) * time.Minute), Mean: map[string][]*float64{
			"gpu_utilization_ratio": v, "cpu_utilization_ratio": v, "memory_used_bytes": {new(float64(i) * (1 << 30))},
			"network_received_bytes_per_second": {new(2e6)}, "network_transmitted_bytes_per_second": {nil}}})
	}
	list := useCharts(client.Telemetry{Nodes: []client.TelemetryNode{node}})
	if len(list) != 3 || list[0].Name != "In use" || list[1].Name != "Memory" || list[2].Name != "Disk and network" {
		t.Fatalf("%+v", list)
	}
	for i, want := range []string{"GPU and CPU", "machine", "received"} {
		if !strings.Contains(string(list[i].Drawing), want) {
			t.Errorf("%s has no %q", list[i].Name, want)
		}
	}
	if strings.Contains(string(list[2].Drawing), "sent") {
		t.Error("it draws a metric without values")
	}
	for _, tick := range []string{">1GiB<", ">2GiB<", ">3GiB<"} { // round numbers of the unit that the axis names
		if !strings.Contains(string(list[1].Drawing), tick) {
			t.Errorf("the axis of memory has no %s: %s", tick, list[1].Drawing)
		}
	}
	if !strings.Contains(string(list[2].Drawing), "MiB/s<") {
		t.Errorf("the axis of the network is not in MiB/s: %s", list[2].Drawing)
	}
	if useCharts(client.Telemetry{}) != nil {
		t.Error("it draws nothing of nothing")
	}
}
