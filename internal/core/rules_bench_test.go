package core

import (
	"fmt"
	"testing"
	"time"

	"scrimp/internal/budget"
	"scrimp/internal/ledger"
	"scrimp/internal/money"
	"scrimp/internal/plan"
)

func crowded(n int) *Machine {
	m := New()
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	ev := func(b Body) { m.Step(Event{At: at, Schema: Schema, Tenant: "default", Actor: "user:ann", Body: b}) }
	ev(Configured{Config: DefaultConfig()})
	for i := range n {
		id := fmt.Sprintf("j-%07d", i)
		ev(JobSubmitted{Job: id, Terms: Terms{
			Name: id, Owner: ledger.Owner{Tenant: "default", Team: fmt.Sprint("t", i%10)}, Need: plan.Need{Asks: plan.Asks{CPUs: 100_000}},
			Currency: money.USD, Priority: 1, Saves: true, Restart: time.Minute, Grace: 20 * time.Second, Nodes: 1, Promise: 0.9, HasBudget: true, Budget: money.FromMicros(5e6, 0),
		}})
	}
	return m
}

func BenchmarkSetRules(b *testing.B) {
	m := crowded(1_000_000)
	rules := budget.Rules{Limits: []budget.Limit{{Scope: "all", Window: budget.Month, Dollars: new(money.Picos(9e18))}, {Scope: "team:t1", Window: budget.Week, Running: new(int), GPUHours: new(float64)}}}
	*rules.Limits[1].Running = 5
	*rules.Limits[1].GPUHours = 500
	for b.Loop() {
		m.Step(Event{At: m.now, Schema: Schema, Tenant: "default", Body: BudgetsSet{Rules: rules}})
	}
}
