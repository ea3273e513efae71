// Package script runs the JavaScript functions of commands ($where, mapReduce) on goja and limits their time and
// memory.
//
// Values are those of package value; numbers are float64, as in JavaScript. Errors of a script are *fault.Error
// with code JSInterpreterFailure. Errors of the host are returned unchanged.
package script

import (
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dop251/goja"
	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/parser"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// errLimit is the error of a function that exceeds a limit on time, memory, depth or values.
var errLimit = failure("the script exceeds its time or memory limit")

func failure(message string) error {
	return fault.Errorf(fault.JSInterpreterFailure, "%s", message)
}

const (
	maxTime   = time.Second / 2      // computing time of a call; time spent in a Builtin does not count
	interval  = 5 * time.Millisecond // between checks of the limits
	maxHeap   = 256 << 20            // growth of the process's heap during a call, in bytes
	maxDepth  = 200                  // of nested calls, and of nested arrays and documents in results
	maxValues = 1 << 20              // exported by a call
)

// unbounded lists built-in objects and methods that can allocate any amount of memory in one step, where no
// limit is checked. They are removed from the runtime.
var unbounded = map[string][]string{
	"": {"ArrayBuffer", "DataView", "Int8Array", "Uint8Array", "Uint8ClampedArray", "Int16Array", "Uint16Array",
		"Int32Array", "Uint32Array", "Float32Array", "Float64Array", "BigInt64Array", "BigUint64Array", "BigInt"},
	"String": {"repeat", "padStart", "padEnd"},
	"Array":  {"fill"},
}

// prelude defines functions that servers add to JavaScript.
var prelude = goja.MustCompile("", `
	Array.sum = function(list) { return list.length ? list.reduce(function(a, b) { return a + b }) : null };
	Array.avg = function(list) { return list.length ? Array.sum(list) / list.length : null };
	Array.contains = function(list, x) { return list.some(function(item) { return item == x }) };
`, false)

// Function is a parsed function. It may be called concurrently.
type Function struct{ program *goja.Program }

// Builtin is a function of the host. Its error ends the script. The script cannot catch it.
type Builtin func(args []any) (any, error)

// Parse parses the source of a function: function(…) { … } or (…) => ….
func Parse(source string) (*Function, error) {
	source = "(" + source + "\n)"
	parsed, err := parser.ParseFile(nil, "", source, 0)
	if err != nil {
		return nil, failure("SyntaxError: " + err.Error())
	}
	if len(parsed.Body) == 1 {
		if s, ok := parsed.Body[0].(*ast.ExpressionStatement); ok {
			switch s.Expression.(type) {
			case *ast.FunctionLiteral, *ast.ArrowFunctionLiteral:
				check(reflect.ValueOf(s), map[any]bool{})
				program, err := goja.CompileAST(parsed, false)
				return &Function{program}, err
			}
		}
	}
	return nil, failure("the script is not a function")
}

// ParseCondition parses the source of an expression or of a function without parameters. The returned function
// converts the result to a boolean.
func ParseCondition(source string) (*Function, error) {
	source = strings.TrimRight(source, "; \t\r\n")
	if _, err := Parse(source); err == nil {
		source = "(" + source + "\n).call(this)"
	}
	return Parse("function() { return !!(" + source + "\n) }")
}

// execution is one call of a function.
type execution struct {
	vm       *goja.Runtime
	inHost   atomic.Bool // a Builtin is running
	computed time.Duration
	heap     atomic.Uint64 // the least number of bytes so far: garbage of earlier calls does not count
	values   int
}

// Call calls the function with a value of this, global functions and arguments. The result is a value of package
// value; undefined becomes nil. If stopped is not nil, it is called before the script runs and periodically while
// it runs, from another goroutine. Its error ends the script.
func (f *Function) Call(stopped func() error, this any, globals map[string]Builtin, args ...any) (any, error) {
	if stopped != nil {
		if err := stopped(); err != nil {
			return nil, err
		}
	}
	c := &execution{vm: goja.New()}
	c.heap.Store(heap())
	c.vm.SetMaxCallStackSize(maxDepth)
	c.restrict()
	for name, b := range globals {
		_ = c.vm.Set(name, c.builtin(b)) // fails only for frozen objects
	}
	_ = c.vm.Set(checkName, c.checked)
	_, _ = c.vm.RunProgram(prelude) // cannot fail
	loaded := make([]goja.Value, len(args))
	for i := range args {
		loaded[i] = c.load(args[i])
	}
	done := make(chan struct{})
	defer close(done)
	go c.watch(stopped, done)
	// Reading values can run code of the script (getters, toString), so this is inside a call as well.
	var result any
	var failed error
	whole, _ := goja.AssertFunction(c.vm.ToValue(func(goja.FunctionCall) goja.Value {
		result, failed = c.run(f, c.load(this), loaded)
		return nil
	}))
	if _, err := whole(nil); err != nil {
		failed = scriptError(err)
	}
	return result, failed
}

func (c *execution) run(f *Function, this goja.Value, args []goja.Value) (any, error) {
	function, err := c.vm.RunProgram(f.program)
	if err != nil {
		return nil, scriptError(err)
	}
	run, _ := goja.AssertFunction(function)
	v, err := run(this, args...)
	if err != nil {
		return nil, scriptError(err)
	}
	return c.export(v, 0)
}

func (c *execution) restrict() {
	for of, names := range unbounded {
		object := c.vm.GlobalObject()
		if of != "" {
			object = object.Get(of).ToObject(c.vm).Get("prototype").ToObject(c.vm)
		}
		for _, name := range names {
			_ = object.Delete(name)
		}
	}
}

func (c *execution) builtin(b Builtin) func(goja.FunctionCall) goja.Value {
	return func(call goja.FunctionCall) goja.Value {
		args := make([]any, len(call.Arguments))
		var err error
		for i := range args {
			if args[i], err = c.export(call.Arguments[i], 0); err != nil {
				c.vm.Interrupt(err)
				return goja.Undefined()
			}
		}
		c.inHost.Store(true)
		v, err := b(args)
		c.inHost.Store(false)
		if err != nil {
			c.vm.Interrupt(err)
		}
		return c.load(v)
	}
}

// scriptError converts an error of the runtime to the host's error, errLimit, or the value that the script threw. It
// may run code of the script (toString).
func scriptError(err error) error {
	switch e := err.(type) {
	case *goja.InterruptedError:
		return e.Unwrap()
	case *goja.StackOverflowError:
		return errLimit
	case *goja.Exception:
		return failure(e.Value().String())
	}
	return err
}

// watch interrupts the script when it exceeds a limit.
func (c *execution) watch(stopped func() error, done <-chan struct{}) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
		}
		err := c.exceeded()
		if err == nil && stopped != nil {
			err = stopped()
		}
		if err != nil {
			c.vm.Interrupt(err)
			return
		}
	}
}

func (c *execution) exceeded() error {
	if c.inHost.Load() {
		return nil
	}
	c.computed += interval
	if c.computed > maxTime || c.grown() {
		return errLimit
	}
	return nil
}

// opaque holds a BSON value without a JavaScript type. Scripts can only pass it on.
type opaque struct{ v any }

// load converts a BSON value to a JavaScript value.
func (c *execution) load(v any) goja.Value {
	switch x := v.(type) {
	case nil:
		return goja.Null()
	case int32, int64:
		return c.vm.ToValue(value.Float(x))
	case float64, bool, string:
		return c.vm.ToValue(x)
	case bson.D:
		o := c.vm.NewObject()
		for _, e := range x {
			_ = o.Set(e.Key, c.load(e.Value))
		}
		return o
	case bson.A:
		items := make([]any, len(x))
		for i := range x {
			items[i] = c.load(x[i])
		}
		return c.vm.NewArray(items...)
	case bson.Undefined, value.Missing:
		return goja.Undefined()
	}
	return c.vm.ToValue(&opaque{v})
}

// export converts a JavaScript value to a BSON value.
func (c *execution) export(v goja.Value, depth int) (any, error) {
	if c.values++; depth > maxDepth || c.values > maxValues {
		return nil, errLimit
	}
	o, isObject := v.(*goja.Object)
	if !isObject {
		if v == nil || goja.IsUndefined(v) || goja.IsNull(v) {
			return nil, nil
		}
		switch x := v.Export().(type) {
		case int64:
			return float64(x), nil
		case float64, bool, string:
			return x, nil
		}
		return nil, failure(fmt.Sprintf("TypeError: %s cannot be converted to BSON", v.ExportType()))
	}
	if o.ExportType() == reflect.TypeFor[*opaque]() {
		return o.Export().(*opaque).v, nil
	}
	if o.ClassName() == "Array" {
		a := bson.A{}
		for i := range o.Get("length").ToInteger() {
			item, err := c.export(o.Get(fmt.Sprint(i)), depth+1)
			if err != nil {
				return nil, err
			}
			a = append(a, item)
		}
		return a, nil
	}
	d := bson.D{}
	for _, k := range o.Keys() {
		field := o.Get(k)
		if goja.IsUndefined(field) {
			continue
		}
		item, err := c.export(field, depth+1)
		if err != nil {
			return nil, err
		}
		d = append(d, bson.E{Key: k, Value: item})
	}
	return d, nil
}
