; A lock that nobody has set: whatever was in memory, 32 bits wide, may be the number that lets two threads in.
; expect: sc violated (explicit: undecided), tso violated (explicit: undecided), pso violated (explicit: undecided)

begin shared_data
    Lock dd ?
end shared_data

begin unsafe_prop
    eip[$t1] = cs && eip[$t2] = cs
end unsafe_prop

begin init_code
    start_threads
end init_code

begin thread_code
enter:  cmp dword [Lock], 77
        jne enter
cs:     nop
end thread_code
