package scheduler

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"scrimp/internal/decide/pack"
)

// offered are the machine types of the tests.
var offered = []pack.Type{
	{Name: "cpu-small", Size: pack.Size{0, 4000, 16000}}, {Name: "cpu-large", Size: pack.Size{0, 32000, 128000}},
}

// A rollback restores a statement to its mark after any attempts.
func TestStatement_RollsBackToItsMark(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 7))
	v := &pack.View{Types: offered}
	for i := range 12 {
		v.Tasks = append(v.Tasks, pack.Task{ID: i, Size: pack.Size{0, 1000, 1000}, On: i % 3})
	}
	for m := range 3 {
		x := pack.Machine{ID: m, Type: 1}
		for i := m; i < 12; i += 3 {
			x.Tasks = append(x.Tasks, i)
		}
		v.Machines = append(v.Machines, x)
	}
	s := NewStatement(v)
	step := func() {
		if r.IntN(5) == 0 {
			s.Open(r.IntN(len(v.Types)))
			return
		}
		s.Move(r.IntN(12), r.IntN(len(s.machines)+1)-1)
	}
	for range 50 {
		step()
		mark := s.Mark()
		before := NewStatement(v)
		before.machines, before.on = nil, append([]int{}, s.on...)
		for _, m := range s.machines {
			before.machines = append(before.machines, seats{m.kind, m.room, append([]int{}, m.tasks...)})
		}
		for range r.IntN(20) {
			step()
		}
		s.Rollback(mark)
		if !reflect.DeepEqual(s.on, before.on) || len(s.machines) != len(before.machines) {
			t.Fatal("a rollback leaves tasks or machines that were not there")
		}
		for i, m := range s.machines {
			if m.room != before.machines[i].room || len(m.tasks) != len(before.machines[i].tasks) {
				t.Fatalf("machine %d is not as it was", i)
			}
			for k := range m.tasks {
				if m.tasks[k] != before.machines[i].tasks[k] {
					t.Fatalf("machine %d has its tasks in another order", i)
				}
			}
		}
	}
	s.Rollback(0)
	if p := s.Commit(); len(p.Launches)+len(p.Moves)+len(p.Releases) != 0 {
		t.Errorf("a statement that was rolled back plans %+v", p)
	}
}

func TestCommit_RefusesAFullMachine(t *testing.T) {
	t.Parallel()
	v := &pack.View{Types: offered, Tasks: []pack.Task{{Size: pack.Size{0, 9000, 0}, On: pack.Waiting}}}
	s := NewStatement(v)
	s.Move(0, s.Open(0))
	defer func() {
		if recover() == nil {
			t.Error("a task of 9 vCPU is on a machine of 4")
		}
	}()
	s.Commit()
}
