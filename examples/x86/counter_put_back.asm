; Every thread counts itself in and out again, once, without `lock`. A store puts back the whole number that
; was loaded: who is out finds 2 of 2 threads inside.
; source: S. Conchon, D. Declerck, F. Zaïdi, Compiling parameterized x86-TSO concurrent programs to
; Cubicle-W, 2017 (section 4, operations on counters)
; expect: sc violated, tso violated, pso violated

begin shared_data
    c dd 0 ! as counter
end shared_data
begin unsafe_prop
    eip[$t] = bad
end unsafe_prop
begin init_code
    start_threads
end init_code
begin thread_code
       inc dword [c]
       dec dword [c]
       cmp dword [c], N
       je bad
rest:  jmp rest
bad:   nop
end thread_code
