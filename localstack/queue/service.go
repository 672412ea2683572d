package queue

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"
)

// Options set up a Service. The zero value works.
type Options struct {
	// Addr is where Start listens, a loopback address. Default: 127.0.0.1 and a
	// free port. New ignores it.
	Addr string
	// Region is in the ARNs. Default: us-east-1.
	Region string
	// AccountID is in the ARNs and URLs. Default: 000000000000.
	AccountID string
	// BaseURL is what queue URLs begin with, without a slash at its end. Default:
	// what the client has called, and http://localhost for Queue.URL. Start sets
	// it where it is empty.
	BaseURL string
	// Faults makes standard queues as bad as they may be. Default: they deliver
	// once and in the order of arrival.
	Faults Faults
	// Accepted is told each message that a queue accepts, by its name, and whether it
	// is a duplicate that a FIFO queue will not deliver. It is called with the
	// service locked: it must be quick and not call the service. Default: nobody is
	// told.
	Accepted func(queue string, o Outgoing, duplicate bool)
	// InFlight is how many messages of one queue can be in flight. Default:
	// 120,000, the quota of AWS ("Amazon SQS message quotas").
	InFlight int
}

// Faults makes standard queues use the freedom that AWS gives them:
// "at-least-once delivery" and "best-effort ordering" ("Amazon SQS standard
// queues"). FIFO queues promise more and have no faults.
type Faults struct {
	// Seed makes a run repeatable: the same calls in the same order see the same
	// faults.
	Seed uint64
	// Redeliver is the probability, from 0 to 1, that a delivered message leaves
	// a copy behind, which is delivered as well: at some time within the
	// visibility timeout, whether the message has been deleted by then or not.
	Redeliver float64
	// Reorder delivers messages in a random order.
	Reorder bool
}

func (o Options) withDefaults() Options {
	o.Region = cmp.Or(o.Region, "us-east-1")
	o.AccountID = cmp.Or(o.AccountID, "000000000000")
	o.InFlight = cmp.Or(o.InFlight, 120_000)
	return o
}

// Service is the queues of one account in one Region. It is an http.Handler
// for the SQS API.
type Service struct {
	options Options
	done    chan struct{} // closed by Close

	mu      sync.Mutex // guards all below, and the queues
	closed  bool
	queues  map[string]*Queue
	deleted map[string]time.Time // by name: when
	serial  uint64               // of the last queue or message
	random  *rand.Rand
}

// New returns a Service without queues, for use in this process alone or as the
// handler of an http.Server.
func New(options Options) *Service {
	options = options.withDefaults()
	return &Service{
		options: options,
		done:    make(chan struct{}),
		queues:  map[string]*Queue{},
		deleted: map[string]time.Time{},
		random:  rand.New(rand.NewPCG(options.Faults.Seed, options.Faults.Seed)),
	}
}

// Close ends all waiting receives, which get ErrClosed, as every later call
// does that can fail. It may be called again.
func (s *Service) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		close(s.done)
	}
	return nil
}

// recreateAfter is how long a name stays taken when its queue is deleted
// ("DeleteQueue").
const recreateAfter = 60 * time.Second

// CreateQueue creates a queue with the attributes of the API's CreateQueue,
// whose defaults stand for those that are not given. A queue of that name is
// returned as it is if its attributes have the values that are given, and is
// QueueNameExists otherwise.
func (s *Service) CreateQueue(name string, attributes map[string]string) (*Queue, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	fifo := attributes[attrFifoQueue] == "true"
	if err := checkName(name, fifo); err != nil {
		return nil, err
	}
	now := time.Now()
	settings, err := s.apply(defaults(fifo), attributes, true)
	if err != nil {
		return nil, err
	}
	if existing := s.queues[name]; existing != nil {
		if differs, ok := existing.settings.differsFrom(settings, attributes); ok {
			return nil, queueNameExists.error("A queue already exists with the same name and a different value for attribute %s", differs)
		}
		return existing, nil
	}
	if at, ok := s.deleted[name]; ok && now.Sub(at) < recreateAfter {
		return nil, queueDeletedRecently.error("You must wait 60 seconds after deleting a queue before you can create another with the same name.")
	}
	q := newQueue(s, name, settings, now)
	s.queues[name] = q
	return q, nil
}

// checkName holds the rule for names of CreateQueue.
func checkName(name string, fifo bool) error {
	if name == "" {
		return missing("QueueName")
	}
	base, suffixed := strings.CutSuffix(name, ".fifo")
	plain := base != "" && len(name) <= 80 && !strings.ContainsFunc(base, func(r rune) bool { return !isWord(r) })
	switch {
	case fifo && (!plain || !suffixed):
		return invalidParameterValue.error("The name of a FIFO queue can only include alphanumeric characters, hyphens, or underscores, must end with .fifo suffix and be 1 to 80 in length.")
	case !fifo && (!plain || suffixed):
		return invalidParameterValue.error("Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length")
	}
	return nil
}

func isWord(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-' || r == '_'
}

// Queue finds a queue by its name, ARN or URL. The error is QueueDoesNotExist.
func (s *Service) Queue(id string) (*Queue, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	name := id
	switch {
	case strings.HasPrefix(id, "arn:"):
		name, _ = strings.CutPrefix(id, s.arn(""))
	case strings.Contains(id, "/"):
		name = id[strings.LastIndexByte(id, '/')+1:]
	}
	if q := s.queues[name]; q != nil {
		return q, nil
	}
	return nil, noSuchQueue()
}

// Queues lists all queues by name.
func (s *Service) Queues() []*Queue {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(maps.Values(s.queues), func(a, b *Queue) int { return cmp.Compare(a.name, b.name) })
}

func (s *Service) arn(name string) string {
	return "arn:aws:sqs:" + s.options.Region + ":" + s.options.AccountID + ":" + name
}

// byARN finds the queue that a redrive policy or a move task names, or nil.
func (s *Service) byARN(arn string) *Queue {
	name, ok := strings.CutPrefix(arn, s.arn(""))
	if !ok {
		return nil
	}
	return s.queues[name]
}

// next numbers queues and messages.
func (s *Service) next() uint64 {
	s.serial++
	return s.serial
}
