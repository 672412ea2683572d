package eventsource_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// fakeStream is a DynamoDB stream whose shards a test creates. Each page of its lists has one
// entry, and its iterators expire after 15 minutes.
type fakeStream struct {
	mu     sync.Mutex
	shards []*fakeShard
	next   int                 // the next sequence number
	calls  map[string]int      // number of calls, by action
	broken func(string) string // returns the error code for a call of an action, or ""
}

type fakeShard struct {
	id, parent string
	records    []map[string]any
	trimmed    int // number of records that were trimmed, from the first on
	closed     bool
}

const endpointARN = "arn:aws:dynamodb:ddblocal:000000000000:table/ledger/stream/2026-01-02T00:00:00.000"

func newFakeStream() *fakeStream {
	return &fakeStream{calls: map[string]int{}, broken: func(string) string { return "" }, next: 100}
}

func (f *fakeStream) shard(id string) *fakeShard {
	if i := slices.IndexFunc(f.shards, func(s *fakeShard) bool { return s.id == id }); i >= 0 {
		return f.shards[i]
	}
	return nil
}

// open adds an open shard. parent is "" if the shard has no parent.
func (f *fakeStream) open(id, parent string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.shards = append(f.shards, &fakeShard{id: id, parent: parent})
}

func (f *fakeStream) close(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.shard(id).closed = true
}

// trim trims all records that a shard has now, as DynamoDB does after 24 hours.
func (f *fakeStream) trim(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.shard(id).trimmed = len(f.shard(id).records)
}

// write adds a record for each name to a shard, with the current time. It opens the shard if it
// does not exist.
func (f *fakeStream) write(shard string, names ...string) {
	if f.mu.Lock(); f.shard(shard) == nil {
		f.shards = append(f.shards, &fakeShard{id: shard})
	}
	f.mu.Unlock()
	for _, name := range names {
		f.record(shard, map[string]any{"Keys": map[string]any{"id": map[string]any{"S": name}}, "ApproximateCreationDateTime": time.Now().Unix()})
	}
}

func (f *fakeStream) record(shard string, dynamodb map[string]any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.next++
	dynamodb["SequenceNumber"] = strconv.Itoa(f.next)
	s := f.shard(shard)
	s.records = append(s.records, map[string]any{
		"eventID": fmt.Sprintf("event-%d", f.next), "eventName": "INSERT", "eventVersion": "1.1", "eventSource": "aws:dynamodb", "awsRegion": "ddblocal", "dynamodb": dynamodb,
	})
}

func (f *fakeStream) count(action string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[action]
}

// breaks makes the given number of next calls of an action fail with the error code err.
func (f *fakeStream) breaks(action, err string, times int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.broken = func(called string) string {
		if called != action || times == 0 {
			return ""
		}
		times--
		return err
	}
}

func (f *fakeStream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var in struct {
		TableName, StreamArn, ShardID, ShardIteratorType, SequenceNumber, ShardIterator string
		StreamAfter                                                                     string `json:"ExclusiveStartStreamArn"`
		ShardAfter                                                                      string `json:"ExclusiveStartShardId"`
		Limit                                                                           int
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		panic(err)
	}
	_, action, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	f.calls[action]++
	out, problem := map[string]any{}, f.broken(action)
	if problem == "" {
		switch action {
		case "ListStreams":
			out = f.list(in.TableName, in.StreamAfter)
		case "DescribeStream":
			out, problem = f.describe(in.StreamArn, in.ShardAfter)
		case "GetShardIterator":
			out, problem = f.iterator(in.ShardID, in.ShardIteratorType, in.SequenceNumber)
		case "GetRecords":
			out, problem = f.get(in.ShardIterator, in.Limit)
		}
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	if problem != "" {
		w.WriteHeader(http.StatusBadRequest)
		out = map[string]any{"__type": "com.amazonaws.dynamodb.v20120810#" + problem, "message": "by the test"}
	}
	if err := json.NewEncoder(w).Encode(out); err != nil {
		panic(err)
	}
}

// list returns one page of ListStreams: the stream after the one with ARN after. The table has
// three streams, two of which belonged to earlier tables of the same name. The current stream is
// the second, so that a caller that takes the first or the last one is wrong.
func (f *fakeStream) list(table, after string) map[string]any {
	streams := []string{strings.Replace(endpointARN, "01-02", "01-01", 1), endpointARN, strings.Replace(endpointARN, "2026", "2025", 1)}
	i := slices.Index(streams, after) + 1
	if table != "ledger" {
		return map[string]any{"Streams": []any{}}
	}
	out := map[string]any{"Streams": []any{map[string]any{
		"StreamArn": streams[i], "TableName": table, "StreamLabel": streams[i][strings.Index(streams[i], "stream/")+7:],
	}}}
	if i < 2 {
		out["LastEvaluatedStreamArn"] = streams[i]
	}
	return out
}

func (f *fakeStream) describe(arn, after string) (map[string]any, string) {
	if arn != endpointARN {
		return nil, "ResourceNotFoundException"
	}
	i := slices.IndexFunc(f.shards, func(s *fakeShard) bool { return s.id == after }) + 1
	description := map[string]any{"StreamArn": arn, "StreamStatus": "ENABLED", "Shards": []any{}}
	if i < len(f.shards) {
		s := f.shards[i]
		numbers := map[string]any{"StartingSequenceNumber": "1"}
		if s.closed {
			numbers["EndingSequenceNumber"] = "999"
		}
		shard := map[string]any{"ShardId": s.id, "SequenceNumberRange": numbers}
		if s.parent != "" {
			shard["ParentShardId"] = s.parent
		}
		description["Shards"] = []any{shard}
		if i < len(f.shards)-1 {
			description["LastEvaluatedShardId"] = s.id
		}
	}
	return map[string]any{"StreamDescription": description}, ""
}

func (f *fakeStream) iterator(shard, kind, sequence string) (map[string]any, string) {
	s := f.shard(shard)
	if s == nil {
		return nil, "ResourceNotFoundException"
	}
	at := s.trimmed
	switch kind {
	case "LATEST":
		at = len(s.records)
	case "AFTER_SEQUENCE_NUMBER":
		at = 1 + slices.IndexFunc(s.records, func(r map[string]any) bool {
			return r["dynamodb"].(map[string]any)["SequenceNumber"] == sequence
		})
		if at < s.trimmed {
			return nil, "TrimmedDataAccessException"
		}
	}
	return map[string]any{"ShardIterator": iteratorAt(shard, at)}, ""
}

func iteratorAt(shard string, at int) string {
	return fmt.Sprintf("%s|%d|%d", shard, at, time.Now().Unix())
}

func (f *fakeStream) get(iterator string, limit int) (map[string]any, string) {
	parts := strings.Split(iterator, "|")
	at, _ := strconv.Atoi(parts[1])
	issued, _ := strconv.ParseInt(parts[2], 10, 64)
	s := f.shard(parts[0])
	switch {
	case time.Since(time.Unix(issued, 0)) > 15*time.Minute:
		return nil, "ExpiredIteratorException"
	case at < s.trimmed:
		return nil, "TrimmedDataAccessException"
	case limit < 1 || limit > 1000:
		return nil, "ValidationException"
	}
	end := min(len(s.records), at+limit)
	out := map[string]any{"Records": s.records[at:end]}
	if end < len(s.records) || !s.closed {
		out["NextShardIterator"] = iteratorAt(s.id, end)
	}
	return out, ""
}
