package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/lambdaidem/toolkit/bench/peers/driver"
)

// A driver whose clock is not the one of the scenario would give a wrong verdict.
func TestProcess_MustHaveTheClockOfItsSettings(t *testing.T) {
	toolkit := builtToolkit(t)
	env := []string{"PEER_TABLE=records", "PEER_CLOCK_AHEAD_MS=5000", "AWS_REGION=eu-west-1"}
	p, err := startProcess(t.Context(), toolkit.command, env, "", 5*time.Second, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.kill(); err != nil {
		t.Error(err)
	}
	for _, ahead := range []time.Duration{0, 10 * time.Second} {
		if _, err := startProcess(t.Context(), toolkit.command, env, "", ahead, nil); !errors.Is(err, errTooSlow) {
			t.Errorf("startProcess with a clock that must be %v ahead = %v; want %v", ahead, err, errTooSlow)
		}
	}
}

// Nobody waits for a driver that has ended.
func TestProcess_EndIsAnError(t *testing.T) {
	toolkit := builtToolkit(t)
	_, err := startProcess(t.Context(), toolkit.command, []string{"PEER_TABLE=", "AWS_REGION=eu-west-1"}, "", 0, nil)
	if err == nil || !strings.Contains(err.Error(), `table is ""`) {
		t.Errorf("startProcess = %v; want an error with what the driver printed", err)
	}
	p, err := startProcess(t.Context(), toolkit.command, []string{"PEER_TABLE=records", "AWS_REGION=eu-west-1"}, "", 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(p.kill(), p.kill()); err != nil {
		t.Errorf("kill, and kill again = %v", err)
	}
	c := &call{process: p, ran: make(chan struct{}), answer: make(chan driver.Answer, 1)}
	if a, err := c.wait(); err == nil {
		t.Errorf("wait = %+v, nil", a)
	}
	if ran, err := c.waitRun(); err == nil {
		t.Errorf("waitRun = %v, nil", ran)
	}
}
