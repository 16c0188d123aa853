package queue

import "slices"

func (w *world) move(i, to int) {
	t := &w.tasks[i]
	if w.machines[to].released {
		panic("queue: a task is placed on a released machine")
	}
	switch t.phase {
	case waiting:
		t.phase, t.to = bound, to
		w.machines[to].bound = append(w.machines[to].bound, i)
		w.start(to)
	case running:
		t.phase, t.to = stopping, to
		t.moves++
		w.machines[to].bound = append(w.machines[to].bound, i)
		w.note(Entry{Kind: Moved, Task: i, Machine: to})
		w.plan(w.now+t.Kill, due, -1, w.ifStill(i, stopping, func() { w.stop(i) }))
	default:
		panic("queue: a task that is being launched or moved is placed again")
	}
}

// ifStill wraps what so that it runs only while the task stays in the phase.
func (w *world) ifStill(i int, p phase, what func()) func() {
	return func() {
		if w.tasks[i].phase == p {
			what()
		}
	}
}

func (w *world) stop(i int) {
	t := &w.tasks[i]
	w.settle(i)
	if t.done >= t.Work {
		w.finish(i)
		return
	}
	t.phase = leaving
	t.turn++
	w.pace(t.on)
	w.plan(w.now+t.Upload, due, -1, func() {
		w.free(i)
		t.phase = bound
		w.start(t.to)
	})
}

// free removes a task from its machine.
func (w *world) free(i int) {
	t := &w.tasks[i]
	m := t.on
	x := &w.machines[m]
	x.tasks = slices.DeleteFunc(x.tasks, func(o int) bool { return o == i })
	x.used = x.used.Sub(t.Size)
	t.on = -1
	w.note(Entry{Kind: Left, Task: i, Machine: m})
	w.start(m)
	w.endIfEmpty(m)
}

func (w *world) endIfEmpty(m int) {
	x := &w.machines[m]
	if x.released && len(x.tasks) == 0 && len(x.bound) == 0 && x.ended < 0 {
		x.ended = w.now + w.Types[x.kind].Terminate
		w.note(Entry{Kind: Ended, Task: -1, Machine: m})
	}
}

// start starts the bound tasks for which the machine has room.
func (w *world) start(m int) {
	x := &w.machines[m]
	if w.now < x.usable {
		return
	}
	for k := 0; k < len(x.bound); {
		i := x.bound[k]
		t := &w.tasks[i]
		if t.phase != bound || !x.used.Add(t.Size).Fits(w.Types[x.kind].Size) {
			k++
			continue
		}
		x.bound = slices.Delete(x.bound, k, k+1)
		x.tasks = append(x.tasks, i)
		x.used = x.used.Add(t.Size)
		t.phase, t.on, t.to = setup, m, -1
		w.note(Entry{Kind: Started, Task: i, Machine: m})
		after := t.Fetch
		if !slices.Contains(x.images, t.Image) {
			after += t.Build
		}
		w.plan(w.now+after, due, -1, func() { w.begin(i, m) })
	}
}

// begin runs when a task has its data and image.
func (w *world) begin(i, m int) {
	t := &w.tasks[i]
	if x := &w.machines[m]; !slices.Contains(x.images, t.Image) {
		x.images = append(x.images, t.Image)
	}
	t.phase = initial
	w.pace(m)
	w.plan(w.now+t.Init, due, -1, func() {
		t.phase, t.since, t.rate = running, w.now, 0
		w.pace(m)
	})
}

// settle adds a task's progress up to now.
func (w *world) settle(i int) {
	t := &w.tasks[i]
	if t.phase == running || t.phase == stopping {
		t.done += (w.now - t.since) * t.rate
	}
	t.since = w.now
}

// pace updates the rates of a machine's tasks and schedules their ends.
func (w *world) pace(m int) {
	var busy []int
	for _, i := range w.machines[m].tasks {
		if p := w.tasks[i].phase; p == initial || p == running || p == stopping {
			busy = append(busy, i)
		}
	}
	for _, i := range busy {
		t := &w.tasks[i]
		if t.phase == initial {
			continue
		}
		rate := w.Interference.rate(w.tasks, i, busy)
		w.settle(i)
		t.rate = rate
		t.turn++
		left := max(0, t.Work-t.done)
		w.plan(w.now+(left+rate-1)/rate, completion, i, func() { w.finish(i) })
	}
}

func (w *world) finish(i int) {
	t := &w.tasks[i]
	w.settle(i)
	if t.to >= 0 {
		x := &w.machines[t.to]
		x.bound = slices.DeleteFunc(x.bound, func(o int) bool { return o == i })
		defer w.endIfEmpty(t.to)
		t.to = -1
	}
	t.phase, t.end = done, w.now
	t.turn++
	w.ended++
	w.active = slices.DeleteFunc(w.active, func(o int) bool { return o == i })
	w.note(Entry{Kind: Done, Task: i, Machine: t.on})
	m := t.on
	w.free(i)
	w.pace(m)
}
