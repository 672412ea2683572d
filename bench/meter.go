package main

import (
	"runtime"
	"time"
)

// meter has the costs of the process so far. It does not count the requests of a nil wire.
type meter struct {
	cpu    time.Duration
	memory runtime.MemStats
	wire   [3]int64
}

// cost has what operations cost besides time.
type cost struct {
	operations            int64
	cpu                   time.Duration // processor time of this process, including garbage collection
	allocations, bytes    uint64
	trips, sent, received int64
	cpuMeasured           bool
}

func (c cost) plus(d cost) cost {
	return cost{
		c.operations + d.operations, c.cpu + d.cpu, c.allocations + d.allocations, c.bytes + d.bytes,
		c.trips + d.trips, c.sent + d.sent, c.received + d.received, d.cpuMeasured,
	}
}

// each returns the share of one operation in a sum.
func (c cost) each(sum float64) float64 { return sum / float64(max(c.operations, 1)) }

// begin reads the processor time last, and end reads it first, because reading the memory
// statistics stops the world and must not be included.
func begin(w *wire) meter {
	var m meter
	m.readRest(w)
	m.cpu, _ = cpuTime()
	return m
}

func end(w *wire) meter {
	var m meter
	m.cpu, _ = cpuTime()
	m.readRest(w)
	return m
}

func (m *meter) readRest(w *wire) {
	runtime.ReadMemStats(&m.memory)
	if w != nil {
		m.wire = [3]int64{w.trips.Load(), w.sent.Load(), w.received.Load()}
	}
}

func (m *meter) since(before *meter, operations int) cost {
	_, measured := cpuTime()
	return cost{
		operations:  int64(operations),
		cpu:         m.cpu - before.cpu,
		allocations: m.memory.Mallocs - before.memory.Mallocs,
		bytes:       m.memory.TotalAlloc - before.memory.TotalAlloc,
		trips:       m.wire[0] - before.wire[0],
		sent:        m.wire[1] - before.wire[1],
		received:    m.wire[2] - before.wire[2],
		cpuMeasured: measured,
	}
}
