// Command cost prints what requests cost on DynamoDB: write units, read units and their price, for
// several sizes of answers and several ways to store them:
//
//	cost [-write] [-measure=false] [-write-price D] [-read-price D] [-priced TEXT]
//
// Each request goes through the real guard and the real dynamostore, once for each of two
// databases. One is a DynamoDB in memory that counts units by AWS's rule; the tables have its
// figures. The other reports the units that it consumed (ReturnConsumedCapacity), and the program
// compares them with the tables, unless -measure is false. That database is the one at
// AWS_ENDPOINT_URL_DYNAMODB, or a DynamoDB Local that the program starts. DynamoDB reports nothing
// for a refused write, so those units are always computed.
//
// The program prints the tables of docs/cost.md as Markdown. With -write, it writes them into that
// page, and the plot into docs/cost.svg. It must run in the project's folder.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/lambdaidem/toolkit/bench/internal/command"
	"github.com/lambdaidem/toolkit/bench/internal/table"
	"github.com/lambdaidem/toolkit/localstack/ddblocal"
)

// published has the prices that the pages use.
var published = prices{0.625, 0.125, "on demand, us-east-1, the price since 1 November 2024 (aws.amazon.com/dynamodb/pricing/on-demand)"}

type settings struct {
	prices         prices
	write, measure bool
}

func main() { os.Exit(command.Main("cost", os.Args[1:], parseFlags, run)) }

func parseFlags(args []string) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("cost", flag.ContinueOnError)
	flags.Float64Var(&s.prices.write, "write-price", published.write, "`dollars` for a million write request units")
	flags.Float64Var(&s.prices.read, "read-price", published.read, "`dollars` for a million read request units")
	flags.StringVar(&s.prices.source, "priced", "", "where and when the prices were had (default that of the published ones)")
	flags.BoolVar(&s.write, "write", false, "write docs/cost.md and docs/cost.svg")
	flags.BoolVar(&s.measure, "measure", true, "hold the tables to what DynamoDB reports")
	err := command.Parse(flags, args, func() error {
		switch own := s.prices.write != published.write || s.prices.read != published.read; {
		case s.prices.write <= 0 || s.prices.read <= 0:
			return fmt.Errorf("prices are %v and %v; they must be above 0", s.prices.write, s.prices.read)
		case own && s.prices.source == "":
			return errors.New("prices of your own need -priced")
		case s.prices.source == "":
			s.prices.source = published.source
		}
		return nil
	})
	return s, err
}

func run(ctx context.Context, s settings) error {
	memory, err := inMemory(ctx)
	if err != nil {
		return err
	}
	computed, err := memory.conduct(ctx)
	if err != nil {
		return err
	}
	tables := computed.markdown(s.prices)
	fmt.Print(tables)
	fmt.Printf("\nFor dynamostore's documentation:\n\n%s", computed.short(s.prices))
	if s.measure {
		if err := hold(ctx, computed); err != nil {
			return err
		}
	}
	if !s.write {
		return nil
	}
	if err := table.InsertFile("docs/cost.md", "cost", tables); err != nil {
		return err
	}
	return os.WriteFile("docs/cost.svg", computed.plot(s.prices), 0o644)
}

// hold compares the computed figures with those that DynamoDB reports. It returns an error if they
// differ, except for what a transaction wrote.
func hold(ctx context.Context, computed study) (err error) {
	server, err := ddblocal.Start(ctx)
	if err != nil {
		return err
	}
	defer func() {
		server.CloseIdleConnections()
		err = errors.Join(err, server.Stop())
	}()
	reporting, err := newRig(ctx, time.Now, server.Client())
	if err != nil {
		return err
	}
	measured, err := reporting.tables(ctx)
	if err != nil {
		return err
	}
	others, transactions, compared := computed.differences(measured)
	fmt.Fprintf(os.Stderr, "\nDynamoDB at %s agrees with the tables in all but %d of %d figures; of refused writes it reports nothing, and only the items were compared\n",
		server.Endpoint(), len(others)+len(transactions), compared)
	for _, what := range transactions {
		fmt.Fprintln(os.Stderr, "  in a transaction (DynamoDB Local adds up the items' sizes before it rounds):", what)
	}
	for _, what := range others {
		fmt.Fprintln(os.Stderr, "  otherwise:", what)
	}
	if len(others) > 0 {
		return errors.New("DynamoDB reports other units than were computed")
	}
	return nil
}
