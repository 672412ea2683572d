package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lambdaidem/toolkit/localstack/stack"
	"github.com/lambdaidem/toolkit/localstack/template"
)

// The soak plays the second act many times, with several payments at the same time, each of them
// with random trouble.

// soakAtOnce is the maximum number of payments in progress at the same time.
const soakAtOnce = 8

// soakMost is the largest amount of a payment, in cents.
const soakMost = 50

// soakTime is the time limit of a soak for each of its payments.
const soakTime = 30 * time.Second

func soak(ctx context.Context, out io.Writer, times int, seed uint64, logs bool) error {
	var log bytes.Buffer // the stack serializes writes; read only after the stack has stopped
	counted := newSends()
	s, err := stack.Start(ctx, stack.Options{FunctionLog: &log, QueueEndpoint: counted.between, Change: func(t *template.Template) {
		hurried(t)
		for _, f := range t.Functions {
			f.Timeout = min(f.Timeout, 4*time.Second)
		}
	}})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, outboxTime+time.Duration(times)*soakTime)
	defer cancel()
	d := newDemo(s, counted, out)
	d.out.title(s.URL())
	d.out.begin(fmt.Sprintf("%d payments under faults, %d at a time, seed %d", times, soakAtOnce, seed))
	err = d.soak(ctx, s, times, rand.New(rand.NewPCG(seed, 0)))
	if err == nil {
		err = d.out.summary()
	}
	err = errors.Join(err, s.Stop())
	if err != nil || logs {
		fmt.Fprintf(os.Stderr, "\nWhat the functions logged:\n%s\n", log.Bytes())
	}
	return err
}

func (d *demo) soak(ctx context.Context, s *stack.Stack, times int, random *rand.Rand) error {
	users := []string{"carol", "dave", "erin"}
	for _, user := range users {
		balance := int64(times * soakMost)
		if err := s.OpenAccount(ctx, user, "EUR", balance); err != nil {
			return err
		}
		d.opened += balance
	}
	journeys := make([]journey, times)
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(soakAtOnce)
	for i := range journeys {
		t := anyTrouble(random)
		r := t.order(users[random.IntN(len(users))], fmt.Sprintf("soak-%d", i), 1+random.IntN(soakMost))
		group.Go(func() error {
			var err error
			journeys[i], err = d.pay(groupCtx, t, r)
			if err != nil {
				return fmt.Errorf("payment %d: %w", i+1, err)
			}
			return d.await(groupCtx, func(ctx context.Context) (string, error) {
				return d.missing(ctx, []string{journeys[i].payment})
			})
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, j := range journeys {
		d.owed = append(d.owed, j.payment)
	}
	if err := d.arrived(ctx, d.owed...); err != nil {
		return err
	}
	for i, j := range journeys {
		d.out.note("payment %d of %d", i+1, times)
		d.out.picture(d.pathOf(j))
		if err := d.expectJourney(ctx, j, j.trouble.mailCalls()); err != nil {
			return err
		}
	}
	if err := d.everyOne(ctx, d.owed); err != nil {
		return err
	}
	payments, err := d.tables.allPayments(ctx)
	if err != nil {
		return err
	}
	return d.expectMoney(ctx, payments)
}
