package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/bench/peers/driver"
	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/localstack/chaos/proxy"
	"github.com/lambdaidem/toolkit/localstack/ddblocal"
)

// function has the configuration of a deployed function.
type function struct {
	timeout    time.Duration
	clockAhead time.Duration // how far the function's clock is ahead of this process's
	wait       bool          // a duplicate waits for the first attempt
	refuse     bool          // a duplicate is refused at once, even if the peer lets it wait by default
	secrets    string        // secrets that sign fingerprints, separated by commas
}

// stage is one run of one scenario with one peer. It has the tables, the processes and the proxy of
// the run, and records what happens.
type stage struct {
	ctx      context.Context
	peer     *peer
	database *dynamodb.Client
	accounts string
	table    string
	proxy    *proxy.Proxy
	faults   faults

	processes []*process
	runs      atomic.Int32 // how often the handler has started to run
	sent      []*sent
	notes     []string // evidence besides runs and answers
}

// sent is a call of a scenario.
type sent struct {
	*call
	name     string // names the call in the evidence
	script   driver.Script
	many     bool // the call is one of a crowd, whose calls have the same name
	answered bool
	result   driver.Answer
}

// newStage creates the tables of one run, and starts its proxy. The caller must close the stage even
// if newStage returns an error.
func newStage(ctx context.Context, p *peer, server *ddblocal.Server, name string) (*stage, error) {
	s := &stage{ctx: ctx, peer: p, database: server.Client()}
	s.table = "peers-" + name + "-" + rand.Text()
	s.accounts = s.table + "-accounts"
	err := errors.Join(
		dynamostore.CreateTable(ctx, s.database, s.table, func(o *dynamostore.Options) {
			o.IDAttribute = p.idAttribute
			o.ExpirationAttribute = p.ttlAttribute
		}),
		dynamostore.CreateTable(ctx, s.database, s.accounts),
	)
	if err == nil {
		s.proxy, err = proxy.Start(server.Endpoint(), s.faults.choose)
	}
	return s, err
}

// close kills the processes, stops the proxy and deletes the tables. It accepts that newStage may not
// have created all of them.
func (s *stage) close() error {
	var err error
	for _, p := range s.processes {
		err = errors.Join(err, p.kill())
	}
	if s.proxy != nil {
		err = errors.Join(err, s.proxy.Close())
	}
	for _, table := range []string{s.table, s.accounts} {
		_, failed := s.database.DeleteTable(context.WithoutCancel(s.ctx), &dynamodb.DeleteTableInput{TableName: aws.String(table)})
		if missing := (*types.ResourceNotFoundException)(nil); !errors.As(failed, &missing) {
			err = errors.Join(err, failed)
		}
	}
	return err
}

// environment returns the environment variables that tell a driver the function's configuration and
// the endpoint of the database.
func (s *stage) environment(f function, endpoint string) []string {
	flag := func(set bool) string {
		if set {
			return "1"
		}
		return "0"
	}
	return append([]string{
		"PEER_TABLE=" + s.table, "PEER_ACCOUNTS=" + s.accounts,
		"PEER_TIMEOUT_MS=" + strconv.FormatInt(f.timeout.Milliseconds(), 10),
		"PEER_CLOCK_AHEAD_MS=" + strconv.FormatInt(f.clockAhead.Milliseconds(), 10),
		"PEER_WAIT=" + flag(f.wait), "PEER_REFUSE=" + flag(f.refuse), "PEER_SECRETS=" + f.secrets,
		"AWS_ENDPOINT_URL_DYNAMODB=" + endpoint, "AWS_REGION=us-east-1", "AWS_DEFAULT_REGION=us-east-1",
		"AWS_ACCESS_KEY_ID=" + ddblocal.DummyCredential, "AWS_SECRET_ACCESS_KEY=" + ddblocal.DummyCredential,
		"AWS_LAMBDA_FUNCTION_NAME=payments", "AWS_EC2_METADATA_DISABLED=true",
		// The same number of tries for every SDK, so that a scenario with a fault ends soon.
		"AWS_RETRY_MODE=standard", "AWS_MAX_ATTEMPTS=3",
		"PYTHONDONTWRITEBYTECODE=1",
	}, s.peer.env...)
}

// start starts an instance of the function. The proxy stands between the instance and the database.
func (s *stage) start(f function) (*process, error) { return s.startAt(f, s.proxy.URL()) }

// startAt starts an instance of the function that uses the database at endpoint. It sends the
// instance one request with a key of its own, which doesn't count, so that the instance has
// connections to the database before the scenario begins.
func (s *stage) startAt(f function, endpoint string) (*process, error) {
	var counted atomic.Bool
	p, err := startProcess(s.ctx, s.peer.command, s.environment(f, endpoint), s.peer.dir, f.clockAhead, func() {
		if counted.Load() {
			s.runs.Add(1)
		}
	})
	if err != nil {
		return nil, err
	}
	s.processes = append(s.processes, p)
	first := driver.Request{Path: "/warm", Caller: "warm", Key: fmt.Sprintf("00000000-0000-4000-8000-%012d", len(s.processes)), Body: "{}"}
	c, err := p.send(first, time.Minute, driver.Script{Status: 201, Body: []byte("warm")})
	if err != nil {
		return nil, err
	}
	a, err := c.wait()
	if err != nil {
		return nil, err
	}
	if a.Status != 201 {
		return nil, fmt.Errorf("%s: the first request is answered %d %s%s: %s", s.peer.Name, a.Status, a.Body, a.Error, p.stderr.String())
	}
	counted.Store(true)
	return p, nil
}

// send sends a request, whose handler follows script. The status of the handler's response is 201
// unless script has one, and the body is the call's name unless script has one.
func (s *stage) send(name string, p *process, r driver.Request, left time.Duration, script driver.Script) (*sent, error) {
	if script.Status == 0 {
		script.Status = 201
	}
	if script.Body == nil {
		script.Body = []byte(name)
	}
	c, err := p.send(r, left, script)
	one := &sent{call: c, name: name, script: script}
	s.sent = append(s.sent, one)
	return one, err
}

// await waits for the answer of a call, and records it.
func (s *stage) await(c *sent) error {
	a, err := c.wait()
	if err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	c.answered, c.result = true, a
	return nil
}

// do sends a request and waits for its answer.
func (s *stage) do(name string, p *process, r driver.Request, left time.Duration, script driver.Script) error {
	c, err := s.send(name, p, r, left, script)
	if err != nil {
		return err
	}
	return s.await(c)
}

// crowds ensures that only one crowd at a time loads the database.
var crowds sync.Mutex

// crowd sends the same request n times to each of the processes, without waiting for an answer in
// between, and then waits for all answers.
func (s *stage) crowd(name string, n int, r driver.Request, left time.Duration, processes ...*process) error {
	crowds.Lock()
	defer crowds.Unlock()
	var all []*sent
	for range n {
		for _, p := range processes {
			c, err := s.send(name, p, r, left, driver.Script{})
			if err != nil {
				return err
			}
			c.many = true
			all = append(all, c)
		}
	}
	for _, c := range all {
		if err := s.await(c); err != nil {
			return err
		}
	}
	return nil
}

// balance returns the balance of an account, 0 if there is none.
func (s *stage) balance(account string) (string, error) {
	out, err := s.database.GetItem(s.ctx, &dynamodb.GetItemInput{
		TableName: aws.String(s.accounts), ConsistentRead: aws.Bool(true),
		Key: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: account}},
	})
	if err != nil {
		return "", err
	}
	if n, ok := out.Item["balance"].(*types.AttributeValueMemberN); ok {
		return n.Value, nil
	}
	return "0", nil
}

// sleep waits for the time d, or until the stage's context is done.
func (s *stage) sleep(d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
}
