//go:build !local

package server_test

import (
	"os"
	"path/filepath"
)

// chaosMarket interrupts spot machines repeatedly, with a notice in one zone and without in the other. A machine is
// billed for at least twenty seconds.
const chaosMarket = `name: rough
repeat: 90s
offers:
  - {zone: a, region: r, machine: m, cpus: 2, memory: 4GiB, capacity: spot, notice: 3s, price: 0.030, billing: {minimum: 20s},
     available: [{from: 0s, to: 50s}, {from: 55s, to: 90s}]}
  - {zone: b, region: r, machine: m, cpus: 2, memory: 4GiB, capacity: spot, price: 0.031,
     billing: {minimum: 20s, free_if_interrupted_within: 10s},
     available: [{from: 0s, to: 25s, notice: 0s}, {from: 30s, to: 70s, notice: 0s}, {from: 72s, to: 90s, notice: 0s}]}
  - {zone: a, region: r, machine: m, cpus: 2, memory: 4GiB, capacity: on-demand, price: 0.1, billing: {minimum: 20s}}
`

// chaosEngines keeps idle machines for the next job, and lets jobs share a machine.
const chaosEngines = `engines:
  - {name: local, kind: local, seats: 2, timing: {idle: 8s, sweep: 1s, boot: 20s}, with: {market: rough.yaml}}
`

// sells writes the market and the engine into a data folder.
func (c *chaos) sells(folder string) {
	chaosMust(c.t, os.MkdirAll(folder, 0o700))
	for name, text := range map[string]string{"rough.yaml": chaosMarket, "engines.yaml": chaosEngines} {
		chaosMust(c.t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
}
