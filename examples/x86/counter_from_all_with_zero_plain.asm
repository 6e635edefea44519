; A counter of threads that starts at N; who is inside has decremented it.
; Who is outside does not find 0 there, but
; without `lock` an update is lost, because it is two steps.
; source: S. Conchon, D. Declerck, F. Zaïdi, Compiling parameterized x86-TSO concurrent programs to
; Cubicle-W, 2017 (section 4, operations on counters)
; expect: sc violated, tso violated, pso violated

begin shared_data
    c dd N ! as counter
end shared_data
begin unsafe_prop
    eip[$t] = bad
end unsafe_prop
begin init_code
    start_threads
end init_code
begin thread_code
enter: cmp dword [c], 0
       je bad
       dec dword [c]
       inc dword [c]
       jmp enter
bad:   nop
end thread_code
