// The server-side API that procedures and triggers see: getContext(), __, ErrorCodes, console.log, and errors with a
// number. It turns calls into texts for the host, keeps their callbacks, and runs them when the answers come.
(function (native, setup) {
    const parse = JSON.parse;
    const stringify = JSON.stringify;
    const PAGE_SIZE = 100;
    const SORT_PAGE_SIZE = 1000;

    const codes = Object.freeze({
        BadRequest: 400, Forbidden: 403, NotFound: 404, Conflict: 409, PreconditionFailed: 412,
        RequestEntityTooLarge: 413, RetryWith: 449, InternalServerError: 500,
    });

    // `new Error(404, 'text')` gives the error a number, which the client gets as the substatus.
    const PlainError = globalThis.Error;
    function Error(first, second) {
        const numbered = arguments.length > 1 && typeof first === 'number';
        const error = Reflect.construct(PlainError, numbered ? [second] : [...arguments], new.target || Error);
        if (numbered) error.number = first;
        return error;
    }
    Error.prototype = PlainError.prototype;
    Object.setPrototypeOf(Error, PlainError);
    Object.defineProperty(Error.prototype, 'constructor', { value: Error, writable: true, configurable: true });

    function badRequest(text) {
        return new Error(codes.BadRequest, text);
    }

    // Calls of the host. Answers come in the order of the calls.
    const waiting = [];
    let answered = 0;

    function send(call, onAnswer) {
        const taken = native.request(stringify(call));
        if (taken < 0) throw badRequest('The arguments of "' + call.kind + '" are not valid.');
        if (taken > 0) waiting[waiting.length] = onAnswer;
        return taken > 0;
    }

    function deliver(text) {
        const onAnswer = waiting[answered];
        waiting[answered] = undefined;
        answered += 1;
        onAnswer(parse(text));
    }

    function failure(answer) {
        const body = stringify({ Errors: [answer.message] });
        const error = new Error(answer.status, body);
        error.body = body;
        return error;
    }

    function fail(callback, error) {
        if (!callback) throw error;
        callback(error);
    }

    function arrange(options, callback) {
        if (callback === undefined && typeof options === 'function') return { options: {}, callback: options };
        if (options === undefined || options === null) options = {};
        if (typeof options !== 'object') throw badRequest('The options must be an object, not ' + typeof options + '.');
        if (callback !== undefined && callback !== null && typeof callback !== 'function') {
            throw badRequest('The callback must be a function, not ' + typeof callback + '.');
        }
        return { options, callback: callback || undefined };
    }

    // Links: only the script's own container and its items.
    function trimmed(link) {
        return link.endsWith('/') ? link.slice(0, -1) : link;
    }

    const selfLink = trimmed(setup.selfLink);
    const altLink = trimmed(setup.altLink);

    function checkContainer(link) {
        if (typeof link !== 'string') throw badRequest('The link of the collection is not valid.');
        const plain = trimmed(link);
        if (plain !== selfLink && plain !== altLink) {
            throw badRequest('The link "' + link + '" does not belong to the collection of the script.');
        }
    }

    function itemOf(link) {
        if (typeof link !== 'string') throw badRequest('The link of the document is not valid.');
        const plain = trimmed(link);
        for (const [base, name] of [[selfLink, 'rid'], [altLink, 'id']]) {
            const prefix = base + '/docs/';
            if (!plain.startsWith(prefix)) continue;
            const item = plain.slice(prefix.length);
            if (item === '' || item.includes('/')) break;
            return { [name]: item };
        }
        throw badRequest('The link "' + link + '" is not one of a document in the collection of the script.');
    }

    function bodyOf(body) {
        if (typeof body === 'string') body = parse(body);
        if (body === null || typeof body !== 'object' || Array.isArray(body)) {
            throw badRequest('The document must be an object, or a string that holds one as JSON.');
        }
        return body;
    }

    function atLeast(count, given, name) {
        if (given.length < count) throw badRequest('"' + name + '" needs at least ' + count + ' arguments.');
    }

    function onItem(callback) {
        return function (answer) {
            if (answer.status) fail(callback, failure(answer));
            else if (callback && answer.notModified) callback(undefined, undefined, { notModified: true });
            else if (callback) callback(undefined, answer.item, { notModified: false });
        };
    }

    function onFeed(callback) {
        return function (answer) {
            if (answer.status) fail(callback, failure(answer));
            else if (callback) callback(undefined, answer.items, { continuation: answer.continuation });
        };
    }

    function write(kind, target, body, options, callback) {
        const call = {
            kind, ...target, body: bodyOf(body), etag: options.etag, indexAction: options.indexAction,
            generatesId: kind !== 'replace' && options.disableAutomaticIdGeneration !== true,
        };
        return send(call, onItem(callback));
    }

    function pageOf(options) {
        return { pageSize: options.pageSize || PAGE_SIZE, continuation: options.continuation };
    }

    const collection = {
        getSelfLink() { return setup.selfLink; },
        getAltLink() { return setup.altLink; },
        readDocument(link, options, callback) {
            atLeast(1, arguments, 'readDocument');
            const item = itemOf(link);
            const given = arrange(options, callback);
            const call = { kind: 'read', ...item, ifNoneMatch: given.options.ifNoneMatch };
            return send(call, onItem(given.callback));
        },
        readDocuments(link, options, callback) {
            atLeast(1, arguments, 'readDocuments');
            checkContainer(link);
            const given = arrange(options, callback);
            return send({ kind: 'readFeed', ...pageOf(given.options) }, onFeed(given.callback));
        },
        queryDocuments(link, query, options, callback) {
            atLeast(2, arguments, 'queryDocuments');
            checkContainer(link);
            const given = arrange(options, callback);
            return send({ kind: 'query', query, ...pageOf(given.options) }, onFeed(given.callback));
        },
        createDocument(link, body, options, callback) {
            atLeast(2, arguments, 'createDocument');
            checkContainer(link);
            const given = arrange(options, callback);
            return write('create', {}, body, given.options, given.callback);
        },
        upsertDocument(link, body, options, callback) {
            atLeast(2, arguments, 'upsertDocument');
            checkContainer(link);
            const given = arrange(options, callback);
            return write('upsert', {}, body, given.options, given.callback);
        },
        replaceDocument(link, body, options, callback) {
            atLeast(2, arguments, 'replaceDocument');
            const item = itemOf(link);
            const given = arrange(options, callback);
            return write('replace', item, body, given.options, given.callback);
        },
        deleteDocument(link, options, callback) {
            atLeast(1, arguments, 'deleteDocument');
            const item = itemOf(link);
            const given = arrange(options, callback);
            return send({ kind: 'delete', ...item, etag: given.options.etag }, function (answer) {
                if (answer.status) fail(given.callback, failure(answer));
                else if (given.callback) given.callback(undefined, {});
            });
        },
    };
    for (const name of ['readAttachment', 'readAttachments', 'queryAttachments', 'createAttachment',
        'upsertAttachment', 'replaceAttachment', 'deleteAttachment']) {
        collection[name] = function () { throw badRequest('Attachments are not supported.'); };
    }

    // Queries by functions: each step takes the items of the one before.
    function defined(items) {
        return items.filter((item) => item !== undefined);
    }

    function sorted(items, keyOf, sign) {
        const keyed = items.map((item) => [keyOf(item), item]);
        keyed.sort(([a], [b]) => (a < b ? -sign : a > b ? sign : 0));
        return keyed.map(([, item]) => item);
    }

    function functionIn(given) {
        if (typeof given !== 'function') throw badRequest('A function must be given.');
        return given;
    }

    // From the arguments of a step: the step, and how many of the arguments it has taken.
    const steps = {
        filter([test]) {
            functionIn(test);
            return [1, { run: (items) => items.filter((item) => test(item)) }];
        },
        map([change]) {
            functionIn(change);
            return [1, { run: (items) => defined(items.map((item) => change(item))) }];
        },
        pluck([name]) {
            if (typeof name !== 'string' || name === '') throw badRequest('The name of a property must be given.');
            return [1, { run: (items) => defined(items.map((item) => item[name])) }];
        },
        sortBy([keyOf]) {
            functionIn(keyOf);
            return [1, { needsAll: true, run: (items) => sorted(items, keyOf, 1) }];
        },
        sortByDescending([keyOf]) {
            functionIn(keyOf);
            return [1, { needsAll: true, run: (items) => sorted(items, keyOf, -1) }];
        },
        flatten([isShallow]) {
            const taken = typeof isShallow === 'boolean' ? 1 : 0;
            return [taken, { run: (items) => items.flat(isShallow === true ? 1 : Infinity) }];
        },
        unwind([inner, result]) {
            functionIn(inner);
            if (typeof result !== 'function') return [1, { run: (items) => items.flatMap((item) => inner(item)) }];
            const pairs = (item) => inner(item).map((one) => result(item, one));
            return [2, { run: (items) => items.flatMap(pairs) }];
        },
    };

    function toResponse(error, items) {
        if (error) throw error;
        if (!response) throw badRequest('A callback must be given where there is no response.');
        if (setup.response.body === undefined) setup.response.body = items;
        else response.appendBody(stringify(items));
    }

    function query(chain, options, callback) {
        const given = arrange(options, callback);
        const size = given.options.pageSize || PAGE_SIZE;
        const needsAll = chain.some((step) => step.needsAll);
        const done = given.callback || toResponse;
        const apply = (items) => chain.reduce((current, step) => step.run(current), items);
        let found = [];
        function ask(continuation) {
            const pageSize = needsAll ? SORT_PAGE_SIZE : Math.max(size - found.length, 1);
            return send({ kind: 'readFeed', pageSize, continuation }, take);
        }
        function take(answer) {
            if (answer.status) return done(failure(answer));
            let next = answer.continuation;
            try {
                found = found.concat(needsAll ? answer.items : apply(answer.items));
                if (next && (needsAll || found.length < size)) {
                    if (ask(next)) return undefined;
                    if (needsAll) throw new Error(codes.RequestEntityTooLarge, 'There is no time to sort all documents.');
                }
                if (needsAll) found = apply(found);
            } catch (error) {
                return done(error);
            }
            return done(undefined, found, { continuation: next });
        }
        return { isAccepted: ask(given.options.continuation) };
    }

    function chained(chain) {
        const object = { isAccepted: true };
        for (const name of Object.keys(steps)) {
            object[name] = function (...given) {
                if (given[0] === collection || given[0] === shortcut) given.shift();
                const [taken, step] = steps[name](given);
                if (given.length > taken) throw badRequest('Options and callback of a chain are given to "value".');
                return chained([...chain, step]);
            };
        }
        object.value = function (options, callback) { return query(chain, options, callback); };
        return object;
    }

    collection.chain = function () { return chained([]); };
    for (const name of Object.keys(steps)) {
        collection[name] = function (...given) {
            if (given[0] === collection || given[0] === shortcut) given.shift();
            const [taken, step] = steps[name](given);
            return query([step], given[taken], given[taken + 1]);
        };
    }

    // Request and response: a body and headers. Only the body can be set, where the service lets it.
    function message(content, isWritable) {
        function check(name) {
            if (typeof name === 'string' && name.toLowerCase() === 'body' && isWritable) return;
            const known = name in content.headers || String(name).toLowerCase() === 'body';
            if (known) throw new Error(codes.Forbidden, 'Not a writable property: ' + name);
            throw badRequest('Cannot set new values: ' + name);
        }
        // A body that would be too large is refused here, so that a script can return what it has so far.
        function fit(size) {
            if (size <= setup.bodyMax) return size;
            throw new Error(codes.RequestEntityTooLarge, 'The message would be too large.');
        }
        function sizeOf(value) {
            if (value === undefined || value === null) return 0;
            return (typeof value === 'object' ? stringify(value) : String(value)).length;
        }
        let size = 0;
        function setBody(body) {
            check('body');
            size = fit(sizeOf(body));
            content.body = body;
        }
        function appendBody(more) {
            check('body');
            const has = content.body !== undefined && content.body !== null;
            size = fit((has ? size : 0) + sizeOf(more));
            content.body = has ? content.body + more : more;
        }
        return {
            getBody() { return content.body; },
            setBody,
            appendBody,
            getValue(name) { return String(name).toLowerCase() === 'body' ? content.body : content.headers[name]; },
            setValue(name, value) { check(name); setBody(value); },
            appendValue(name, value) { check(name); appendBody(value); },
        };
    }

    const request = message(setup.request, setup.kind === 'pre');
    if (setup.operation) request.getOperationType = function () { return setup.operation; };
    const response = setup.response ? message(setup.response, true) : undefined;
    if (setup.kind === 'post') {
        response.getMaxResourceQuota = function () { return response.getValue('x-ms-resource-quota'); };
        response.getResourceQuotaCurrentUsage = function () { return response.getValue('x-ms-resource-usage'); };
    }

    const context = {
        getCollection() { return collection; },
        getRequest() { return request; },
        abort(reason) { native.abort(reason); throw reason; },
    };
    if (response) context.getResponse = function () { return response; };
    const shortcut = Object.create(collection, { request: { value: request }, response: { value: response } });

    function log(format, ...values) {
        if (!setup.logging) return;
        let next = 0;
        const text = String(format).replace(/%[sdjo%]/g, function (mark) {
            if (mark === '%%' || next >= values.length) return mark === '%%' ? '%' : mark;
            const value = values[next];
            next += 1;
            return typeof value === 'object' ? stringify(value) : String(value);
        });
        const rest = values.slice(next).map((value) => (typeof value === 'object' ? stringify(value) : String(value)));
        if (!native.log([text, ...rest].join(' ') + '\n')) {
            throw new Error(codes.RequestEntityTooLarge, 'The script log is too large.');
        }
    }

    for (const [name, value] of [['Error', Error], ['ErrorCodes', codes], ['getContext', () => context],
        ['__', shortcut], ['console', { log }]]) {
        Object.defineProperty(globalThis, name, { value, writable: true, configurable: true });
    }

    return {
        start(script) { script(...setup.arguments); },
        deliver,
        outcome() {
            const result = {};
            if (setup.kind === 'pre') result.request = setup.request.body;
            if (setup.response) result.response = setup.response.body;
            return stringify(result);
        },
    };
})
