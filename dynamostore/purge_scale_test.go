package dynamostore

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// TestO2_PurgeAtScale purges many records while clients write. It kills a purge, and resumes it.
// LAMBDAIDEM_PURGE_RECORDS sets the number of records, such as 100,000.
func TestO2_PurgeAtScale(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	records, clients := 800, 8
	if n, err := strconv.Atoi(os.Getenv("LAMBDAIDEM_PURGE_RECORDS")); err == nil {
		records, clients = n, 64
	}
	d := openDesk(t)
	fill(t, d, records)
	began := time.Now()

	// 64 clients write records in progress, completed and released ones, all the time.
	ctx, stop := context.WithCancel(t.Context())
	var (
		writers sync.WaitGroup
		calls   atomic.Int64
		failed  atomic.Int64 // the number of failed requests to the store
	)
	guard := d.guard.With(func(o *lambdaidem.Options) {
		o.Namespace, o.Clock = "live", time.Now
		o.Observer = lambdaidem.ObserverFunc(func(_ context.Context, e lambdaidem.Event) {
			if e.Kind == lambdaidem.EventStoreError {
				failed.Add(1)
			}
		})
	})
	for c := range clients {
		writers.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				call := lambdaidem.Call{Operation: "pay", Key: fmt.Sprintf("%d-%d", c, i)}
				runs := 0
				for try := range 3 {
					got, err := lambdaidem.Do(context.WithoutCancel(ctx), guard, call, func(context.Context) (string, error) {
						if runs++; try == 0 {
							return "", errLater
						}
						return call.Key, nil
					})
					// On a busy machine, a request to the store may time out.
					busy := failed.Load() > 0 && (errors.Is(err, lambdaidem.ErrInProgress) || errors.Is(err, lambdaidem.ErrStoreUnavailable) || errors.Is(err, lambdaidem.ErrOutcomeUnknown))
					if try > 0 && !busy && (err != nil || got != call.Key) || runs > 2 {
						t.Errorf("%s got %q, %v after %d runs", call.Key, got, err, runs)
					}
				}
				calls.Add(3)
			}
		})
	}

	// A purge in another process is killed with SIGKILL at an arbitrary point.
	first := purgeProcess(t, d, "")
	killed, after := 0, ""
	for first.Scan() {
		p := PurgeProgress{}
		if err := json.Unmarshal(first.Bytes(), &p); err != nil {
			t.Fatal(err)
		}
		if killed, after = p.Purged, p.After; p.Looked > records/3 {
			first.kill(t)
			break
		}
	}
	if after == "" || killed == 0 {
		t.Fatalf("it was not killed in time: %d were purged", killed)
	}
	runtime.GC()
	var most, base uint64
	base = heap()
	sum := PurgeProgress{}
	for p, err := range d.operator(t, "bob").Purge(t.Context(), onlyOld, func(o *PurgeOptions) { o.After = after }) {
		if err != nil {
			t.Fatal(err)
		}
		most, sum = max(most, heap()), p
	}
	took := time.Since(began)
	stop()
	writers.Wait()
	// The page at which the purge was killed was partly purged.
	if sum.Purged+sum.Before+killed != records || sum.Changed != 0 {
		t.Errorf("%d were purged before it was killed, then %+v; want %d", killed, sum, records)
	}
	t.Logf("%d records in %v, %d calls of %d clients meanwhile, %d of their requests failed; heap %d KB at the beginning, %d KB at most", records, took.Round(time.Millisecond), calls.Load(), clients, failed.Load(), base>>10, most>>10)
	left := 0
	for p, err := range d.operator(t, "carol").Purge(t.Context(), onlyOld, func(o *PurgeOptions) { o.DryRun = true }) {
		if left = p.Matched - p.Before; err != nil {
			t.Fatal(err)
		}
	}
	if left != 0 {
		t.Errorf("%d answers are left", left)
	}
	for p, err := range d.operator(t, "carol").Purge(t.Context(), func(o *PurgeOptions) {
		o.DryRun, o.Match = true, func(rec lambdaidem.Record) bool { return strings.HasPrefix(rec.Scope, "live ") }
	}) {
		if err != nil || p.Before > 0 {
			t.Fatalf("of the clients' records %d are erased (%v)", p.Before, err)
		}
	}
}

func onlyOld(o *PurgeOptions) {
	o.Match = func(rec lambdaidem.Record) bool { return strings.HasPrefix(rec.Scope, "shop ") }
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse
}

// fill writes completed records like those of a guard.
func fill(t *testing.T, d *desk, records int) {
	t.Helper()
	var wait sync.WaitGroup
	next := make(chan int)
	for range 16 {
		wait.Go(func() {
			for i := range next {
				itm := claimed(claim)
				itm.ID, itm.Scope, itm.Token = fmt.Sprintf("lambdaidem#old-%d", i), "shop POST /payments alice", fmt.Sprintf("token-%d", i)
				itm.finish(result)
				itm.Expiration = deletionOf(time.Now().Add(24 * time.Hour))
				if _, err := d.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(d.table), Item: d.store.layout.attributes(itm)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range records {
		next <- i
	}
	close(next)
	wait.Wait()
}

// purgeRun is a purge in another process, which prints its progress line by line.
type purgeRun struct {
	*bufio.Scanner
	cmd *exec.Cmd
}

func (r purgeRun) kill(t *testing.T) {
	t.Helper()
	if err := r.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = r.cmd.Wait() // returns the error that the process was killed
}

const purgeTable = "LAMBDAIDEM_TEST_PURGE"

func purgeProcess(t *testing.T, d *desk, after string) purgeRun {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestPurgeProcess$")
	cmd.Env = append(os.Environ(), purgeTable+"="+d.table, "LAMBDAIDEM_TEST_AFTER="+after,
		"LAMBDAIDEM_TEST_ENDPOINT="+aws.ToString(d.client.Options().BaseEndpoint))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return purgeRun{bufio.NewScanner(out), cmd}
}

// TestPurgeProcess runs in the process of a purgeRun.
func TestPurgeProcess(t *testing.T) {
	table := os.Getenv(purgeTable)
	if table == "" {
		t.Skip("it is a part of TestO2_PurgeAtScale")
	}
	client := dynamodb.New(dynamodb.Options{Region: "us-east-1", BaseEndpoint: aws.String(os.Getenv("LAMBDAIDEM_TEST_ENDPOINT")),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "local", SecretAccessKey: "local"}, nil
		}), HTTPClient: &http.Client{}})
	o, err := New(client, table, patient).Operator("alice", "why")
	if err != nil {
		t.Fatal(err)
	}
	out := json.NewEncoder(os.Stdout)
	for p, err := range o.Purge(t.Context(), onlyOld) {
		if err != nil {
			t.Fatal(err)
		}
		if err := out.Encode(p); err != nil {
			t.Fatal(err)
		}
	}
}
